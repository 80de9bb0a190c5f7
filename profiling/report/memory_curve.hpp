// Allocated memory over time, thinned out without losing a peak: what report.json has of it, and a
// page draws.
#pragma once

#include <nlohmann/json.hpp>

#include "profiling/analysis/analysis.hpp"

namespace sidestream::report {

// [{"rank", "window", "device", "points": [[ns from the first event, bytes]..]}], device -1 for the
// host. Of each stretch the lowest and the highest point are kept, at most `points` in all.
nlohmann::ordered_json memory_curves(const analysis::Analysis& all, std::size_t points = 2000);

}  // namespace sidestream::report
