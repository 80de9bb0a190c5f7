// report.json, schema 1: what scripts rely on. The folder's README has the keys.
#pragma once

#include <nlohmann/json.hpp>

#include "profiling/analysis/details.hpp"
#include "profiling/report/run_metrics.hpp"
#include "profiling/report/shown_steps.hpp"

namespace sidestream::report {

// Everything. `advice` is empty, and bounds and causes of `top_ops` are null: profiling/advice
// fills them.
nlohmann::ordered_json json_report(const analysis::Analysis& analysis,
                                   const analysis::Details& details, const RunMetrics& metrics);

// All of it but `timeline` and `tables`, which no page needs and which ask for the details, and
// `memory_curves`, which not every page draws. Of `steps` and `heat_map` those that are shown; the
// means are of all.
nlohmann::ordered_json json_summary(const analysis::Analysis& analysis, const RunMetrics& metrics,
                                    const ShownSteps& shown = {});

// The list `top_ops`.
nlohmann::ordered_json top_operations_json(const analysis::Analysis& analysis);

}  // namespace sidestream::report
