// One clock for all ranks, from samples that the
// ranks took, from matched collectives, or from both.
#pragma once

#include "profiling/analysis/collective_match.hpp"
#include "profiling/trace/trace_set.hpp"

namespace sidestream::analysis {

// Fills set.clock; the lowest rank is the reference. Ranks leave a collective at about the same
// moment, so the ends of matched collectives are the same moment on two clocks. Send and receive
// pairs count too. A rank that shares no collective with the reference goes by one that does, or by
// one that goes by that, and the uncertainties of the way add up. A rank without anything to go by
// keeps its own time, and a warning names it. Another one names the ranks whose traces begin a
// second or more after the reference's ends, or end so long before it begins.
void align_clocks(trace::TraceSet& set, const CollectiveMatches& matches);

}  // namespace sidestream::analysis
