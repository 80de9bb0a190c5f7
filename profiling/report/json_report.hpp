// report.json, schema 1: what scripts rely on. The folder's README has the keys.
#pragma once

#include <string>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/run_metrics.hpp"

namespace sidestream::report {

std::string json_report(const analysis::Analysis& analysis, const RunMetrics& metrics);

}  // namespace sidestream::report
