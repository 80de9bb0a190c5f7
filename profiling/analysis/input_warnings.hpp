// What is odd about traces once they have been looked at, in words for people.
#pragma once

#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "profiling/analysis/clock_faults.hpp"

namespace sidestream::analysis {

// Adds to the warnings of the set. `faults`: of each timeline.
void warn_about_input(trace::TraceSet& set, const Analysis& all,
                      const std::vector<ClockFaults>& faults);

}  // namespace sidestream::analysis
