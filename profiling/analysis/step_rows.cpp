#include "profiling/analysis/step_rows.hpp"

#include <utility>

namespace sidestream::analysis {
namespace {

using trace::Kind;

std::uint64_t launched_by(const trace::RankTimeline& timeline, std::size_t row) {
  const auto detail = timeline.device(row);
  return detail ? detail->correlation : 0;
}

}  // namespace

StepRows::StepRows(const RankView& rank, IntervalSet windows)
    : rank_(rank),
      windows_(std::move(windows)),
      has_steps_(!rank.steps.empty() && rank.steps.front().step.has_value()) {
  if (has_steps_ && rank.activity.where == Where::kDevice) find_late_work();
}

bool StepRows::begins_inside(std::size_t row) const {
  return windows_.contains(rank_.timeline->start_ns(row));
}

// Of most files these are few: their calls are looked up by nothing larger.
void StepRows::find_late_work() {
  const trace::RankTimeline& timeline = *rank_.timeline;
  std::unordered_set<std::uint64_t> begins_outside;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    const bool device = trace::is_device_work(kind);
    if ((!device && kind != Kind::kRuntime) || begins_inside(row)) continue;
    const std::uint64_t number = device ? launched_by(timeline, row) : timeline.correlation(row);
    if (number != 0) (device ? begins_outside : foreign_).insert(number);
  }
  if (begins_outside.empty()) return;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != Kind::kRuntime || !begins_inside(row)) continue;
    if (begins_outside.contains(timeline.correlation(row))) late_.insert(timeline.correlation(row));
  }
}

bool StepRows::contain(std::size_t row) const {
  if (!has_steps_) return rank_.counts(row);
  const trace::RankTimeline& timeline = *rank_.timeline;
  const bool inside = begins_inside(row);
  if (!trace::is_device_work(timeline.kind(row))) return inside;
  const std::uint64_t number = launched_by(timeline, row);
  return inside ? !foreign_.contains(number) : late_.contains(number);
}

}  // namespace sidestream::analysis
