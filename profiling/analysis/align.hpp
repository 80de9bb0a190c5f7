// One clock for all ranks, from samples that the
// ranks took, from matched collectives, or from both.
#pragma once

#include "profiling/analysis/collective_match.hpp"
#include "profiling/trace/trace_set.hpp"

namespace sidestream::analysis {

// Fills set.clock; the lowest rank is the reference. Ranks leave a collective at about the same
// moment, so the ends of matched collectives are the same moment on two clocks. Send and receive
// pairs count too; a rank without anything to go by keeps its own time, and a warning says so.
void align_clocks(trace::TraceSet& set, const CollectiveMatches& matches);

}  // namespace sidestream::analysis
