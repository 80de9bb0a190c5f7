// report.json with the advice, and bound and cause of the longest operations, in it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profiling/advice/advice.hpp"
#include "profiling/advice/roofline.hpp"
#include "profiling/analysis/analysis.hpp"
#include "profiling/report/run_metrics.hpp"

namespace sidestream::launch {

struct AdvisedReport {
  nlohmann::ordered_json json;
  advice::Facts facts;
  advice::Advice advice;
  std::optional<advice::Ceilings> ceilings = {};

  std::string text() const;  // as report.json is written
};

// Takes settings and machine from the run directory that the inputs lie in, where they do.
AdvisedReport advised_report(const std::vector<std::filesystem::path>& inputs,
                             const analysis::Analysis& analysis, const report::RunMetrics& metrics,
                             const advice::NcuByFunction& counters = {});

// {"flops_per_s": {dtype: ..}, "memory_bytes_per_s", "source"}, or null.
nlohmann::ordered_json ceilings_json(const std::optional<advice::Ceilings>& ceilings);

}  // namespace sidestream::launch
