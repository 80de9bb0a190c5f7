// Operators and ranges of host threads as a tree: what of each is its own time, and which call
// encloses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

inline constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

struct SelfTime {
  std::size_t row = 0;
  std::size_t parent = kNoParent;  // index into the list
  std::int64_t self_ns = 0;        // duration less that of the operators and ranges directly inside
  std::int64_t device_self_ns = 0;   // device work launched by it directly
  std::int64_t device_total_ns = 0;  // by it and everything inside
};

// A parent comes before what is inside it.
std::vector<SelfTime> self_times(const trace::RankTimeline& timeline);

}  // namespace sidestream::analysis
