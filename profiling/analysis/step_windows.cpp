#include "profiling/analysis/step_windows.hpp"

#include <algorithm>

#include "profiling/ranges/phases.hpp"
#include "profiling/trace/decimal.hpp"

namespace sidestream::analysis {

std::vector<StepWindow> step_windows(const trace::RankTimeline& timeline,
                                     const DeviceActivity& activity) {
  std::vector<StepWindow> windows;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const bool finished = timeline.kind(row) == trace::Kind::kHostRange;
    if (!finished && timeline.kind(row) != trace::Kind::kUnfinished) continue;
    const std::string_view name = timeline.name(row);
    if (!name.starts_with(ranges::kStepPrefix)) continue;
    const std::int64_t step = trace::integer_of(name.substr(ranges::kStepPrefix.size()), -1);
    if (step >= 0)
      windows.push_back({step, {timeline.start_ns(row), timeline.end_ns(row)}, finished});
  }
  std::sort(windows.begin(), windows.end(), [](const StepWindow& a, const StepWindow& b) {
    return a.window.start_ns < b.window.start_ns;
  });
  const bool is_busy = activity.where != Where::kNothing && activity.window.length_ns() > 0;
  if (windows.empty() && is_busy) windows.push_back({std::nullopt, activity.window});
  return windows;
}

}  // namespace sidestream::analysis
