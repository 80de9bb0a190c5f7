// Which rank was slow in which step: what report.json has of it, and a page paints.
#pragma once

#include <nlohmann/json.hpp>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/shown_steps.hpp"

namespace sidestream::report {

// {"steps": [..], "ranks": [..], "own_ns": [[..]..], "over_median": [[..]..]}: a row a rank, a
// column a step. `own_ns` is the time of a step that the rank did not wait for the others,
// `over_median` by how much it is above the median rank of that step (0.2: a fifth longer). Null
// where nothing was recorded; a step of null is all of a trace without steps.
nlohmann::ordered_json heat_map(const analysis::Analysis& analysis, const ShownSteps& shown = {});

}  // namespace sidestream::report
