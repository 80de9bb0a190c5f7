// The advice: all rules on the facts of one run, the largest bound first.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiling/advice/rule.hpp"
#include "profiling/report/table.hpp"

namespace sidestream::advice {

struct Finding {
  const Rule* rule = nullptr;
  Found what = {};
  int count = 1;                    // merged ones
  std::optional<Place> place = {};  // where to look in the timeline
};

struct Advice {
  std::vector<Finding> findings = {};
  std::vector<std::pair<std::string, std::string>> not_measured = {};  // rule, what it needs
  std::vector<std::string> nothing_found = {};                         // rules that looked
};

const std::vector<Rule>& all_rules();

Advice advise(const Facts& facts);

// Findings of the same rule and fix become one, with their evidence of the largest bound.
std::vector<Finding> merged(std::vector<Finding> findings);

// Fills `advice` and `nothing_found` of a report.json and adds to its `not_measured`.
void add_to_report(const Advice& advice, nlohmann::ordered_json& report);

std::string advice_text(const Advice& advice, const report::TextStyle& style);

}  // namespace sidestream::advice
