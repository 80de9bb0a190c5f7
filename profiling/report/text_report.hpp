// The report for a person at a terminal: verdict first,
// then where the time went, then what is worth a look.
#pragma once

#include <string>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/run_metrics.hpp"
#include "profiling/report/table.hpp"

namespace sidestream::report {

std::string text_report(const analysis::Analysis& analysis, const RunMetrics& metrics,
                        const TextStyle& style);

}  // namespace sidestream::report
