// When a rank was in the ranges of one name.
#pragma once

#include <string_view>

#include "profiling/analysis/interval_set.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

// Of the host; empty where there is no range of this name.
IntervalSet host_ranges(const trace::RankTimeline& timeline, std::string_view name);

}  // namespace sidestream::analysis
