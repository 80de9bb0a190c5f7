// What a report could not measure, and what has to be recorded for it.
#pragma once

#include <string>
#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/run_metrics.hpp"

namespace sidestream::report {

struct MissingFigure {
  std::string name;  // its key in report.json, or a few words
  std::string needs;
};

std::vector<MissingFigure> missing_figures(const analysis::Analysis& all, const RunMetrics& run);

}  // namespace sidestream::report
