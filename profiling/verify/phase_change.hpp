// The step by its phases, on both sides of a comparison.
#pragma once

#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "profiling/verify/change.hpp"

namespace sidestream::verify {

// A mean step of one rank, milliseconds: forward, backward, ... by Sidestream's ranges on the host,
// collectives that nothing hides outside of these, and what lies outside of both. The parts of each
// side add up to its step. Where ranges lie in each other, the inner one counts. Empty when a side
// has no steps or no such ranges.
std::vector<Part> phases_of_change(const analysis::Analysis& base, const analysis::Analysis& fresh);

}  // namespace sidestream::verify
