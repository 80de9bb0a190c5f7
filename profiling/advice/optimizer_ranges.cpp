#include "profiling/advice/optimizer_ranges.hpp"

#include <utility>
#include <vector>

#include "profiling/ranges/phases.hpp"

namespace sidestream::advice {

bool is_optimizer_range(std::string_view name) {
  return name == ranges::name_of(ranges::Phase::kOptimizer) || name.starts_with("Optimizer.step#");
}

analysis::IntervalSet optimizer_ranges(const trace::RankTimeline& timeline) {
  std::vector<analysis::Interval> found;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != trace::Kind::kHostRange) continue;
    if (is_optimizer_range(timeline.name(row)))
      found.push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  return analysis::IntervalSet(std::move(found));
}

}  // namespace sidestream::advice
