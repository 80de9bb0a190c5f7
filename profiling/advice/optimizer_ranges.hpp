// Where the optimizer works on a host's timeline.
#pragma once

#include "profiling/analysis/interval_set.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::advice {

// Sidestream's phase, and the range that torch.optim puts around step().
analysis::IntervalSet optimizer_ranges(const trace::RankTimeline& timeline);

}  // namespace sidestream::advice
