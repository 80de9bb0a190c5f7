#include "profiling/trace/launch_calls.hpp"

namespace sidestream::trace {

std::unordered_map<std::uint64_t, std::size_t> launch_calls(const RankTimeline& timeline) {
  std::unordered_map<std::uint64_t, std::size_t> calls;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kRuntime && timeline.correlation(row) != 0)
      calls.try_emplace(timeline.correlation(row), row);
  }
  return calls;
}

}  // namespace sidestream::trace
