// The findings as text for people and as JSON for scripts.
#pragma once

#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/job_facts.hpp"

namespace sidestream::launch::doctor {

struct TextStyle {
  bool color = false;
  std::size_t width_columns = 100;
};

// A line a finding; what is not ok has its expectation and its remedy under it. The last line says
// whether training can start.
std::string text_of(const JobFacts& job, const std::vector<Finding>& findings,
                    const TextStyle& style = {});

// { "schema": 1, "can_train", "world_size", "hosts": [..], "counts": {"ok", ..},
//   "findings": [ {"name", "level", "found", "expected", "remedy", "where"} ] }; "where" is a text,
// empty for all ranks.
std::string json_of(const JobFacts& job, const std::vector<Finding>& findings);

}  // namespace sidestream::launch::doctor
