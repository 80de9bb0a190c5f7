// Operators and ranges of host threads as a tree: what of each is its own time, which call encloses
// it, and what it put on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

inline constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

struct Call {
  std::size_t row = 0;
  std::size_t parent = kNoParent;  // index into the list
  std::int64_t self_ns = 0;        // duration less that of the operators and ranges directly inside
  std::int64_t device_self_ns = 0;   // device work launched by it directly
  std::int64_t device_total_ns = 0;  // by it and everything inside
};

struct CallTree {
  std::vector<Call> calls;  // a parent comes before what is inside it
  // Correlation of a launch -> the innermost call around it. Only launches with device work.
  std::unordered_map<std::uint64_t, std::size_t> launched_by;
};

CallTree call_tree(const trace::RankTimeline& timeline);

}  // namespace sidestream::analysis
