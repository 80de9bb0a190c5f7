// Where the optimizer works on a host's timeline.
#pragma once

#include <string_view>

#include "profiling/analysis/interval_set.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::advice {

// The phase, or what PyTorch writes around the step of an optimizer.
bool is_optimizer_range(std::string_view name);

// Sidestream's phase, and the range that torch.optim puts around step().
analysis::IntervalSet optimizer_ranges(const trace::RankTimeline& timeline);

}  // namespace sidestream::advice
