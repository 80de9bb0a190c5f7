// The figures that need to know which operator is inside which, and what it started on the device.
#pragma once

#include "profiling/advice/facts.hpp"

namespace sidestream::advice {

// After gather_events and longest_places: adds to what they found. `recorded` is the number of
// steps of all ranks.
void gather_operators(const analysis::Analysis& all, double recorded, Facts& facts);

}  // namespace sidestream::advice
