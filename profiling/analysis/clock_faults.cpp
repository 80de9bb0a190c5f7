#include "profiling/analysis/clock_faults.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/interval_set.hpp"
#include "profiling/ranges/phases.hpp"
#include "profiling/trace/decimal.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

constexpr std::int64_t kToleranceNs = 100'000;

using Steps = std::map<std::int64_t, Interval>;

Steps steps_of(const RankTimeline& timeline) {
  Steps steps;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != Kind::kHostRange) continue;
    const std::string_view name = timeline.name(row);
    if (!name.starts_with(ranges::kStepPrefix)) continue;
    const std::int64_t step = trace::integer_of(name.substr(ranges::kStepPrefix.size()), -1);
    if (step >= 0) steps[step] = {timeline.start_ns(row), timeline.end_ns(row)};
  }
  return steps;
}

std::uint64_t steps_out_of_order(const Steps& steps) {
  std::uint64_t count = 0;
  const Interval* before = nullptr;
  for (const auto& [step, window] : steps) {
    count += before != nullptr && window.start_ns < before->end_ns - kToleranceNs;
    before = &window;
  }
  return count;
}

std::uint64_t work_longer_than(const Steps& steps, const RankTimeline& timeline) {
  if (steps.empty()) return 0;
  std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  for (const auto& [step, window] : steps) {
    first_ns = std::min(first_ns, window.start_ns);
    last_ns = std::max(last_ns, window.end_ns);
  }
  std::uint64_t count = 0;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    if (kind == Kind::kOperator || trace::is_device_work(kind))
      count += timeline.duration_ns(row) > last_ns - first_ns + kToleranceNs;
  }
  return count;
}

// Calls of a thread nest.
std::uint64_t crossings_of(std::vector<Interval>& calls) {
  std::sort(calls.begin(), calls.end(), [](const Interval& a, const Interval& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  std::uint64_t count = 0;
  std::vector<std::int64_t> open;  // ends
  for (const Interval& call : calls) {
    while (!open.empty() && open.back() <= call.start_ns) open.pop_back();
    const bool crosses = !open.empty() && open.back() - call.start_ns > kToleranceNs &&
                         call.end_ns - open.back() > kToleranceNs;
    count += crosses;
    open.push_back(call.end_ns);
  }
  return count;
}

std::uint64_t crossings(const RankTimeline& timeline) {
  std::vector<std::vector<Interval>> threads(timeline.tracks().size());
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    if (kind == Kind::kOperator || kind == Kind::kRuntime)
      threads[timeline.track_of(row)].push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  std::uint64_t count = 0;
  for (std::vector<Interval>& calls : threads) count += crossings_of(calls);
  return count;
}

std::uint64_t work_before_its_launch(const RankTimeline& timeline) {
  const NameClasses classes(timeline.names);
  std::unordered_map<std::uint64_t, std::int64_t> launched_at;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kRuntime && timeline.correlation(row) != 0 &&
        classes[timeline.name_id(row)] == NameClass::kLaunchCall)
      launched_at[timeline.correlation(row)] = timeline.start_ns(row);
  }
  std::uint64_t count = 0;
  for (std::size_t row = 0; row < timeline.size() && !launched_at.empty(); ++row) {
    if (timeline.kind(row) != Kind::kKernel || timeline.correlation(row) == 0) continue;
    const auto launch = launched_at.find(timeline.correlation(row));
    count += launch != launched_at.end() && timeline.start_ns(row) < launch->second - kToleranceNs;
  }
  return count;
}

}  // namespace

ClockFaults clock_faults(const RankTimeline& timeline) {
  const Steps steps = steps_of(timeline);
  return {.steps = steps_out_of_order(steps),
          .crossings = crossings(timeline),
          .launches = work_before_its_launch(timeline),
          .lengths = work_longer_than(steps, timeline)};
}

std::string describe(const ClockFaults& faults) {
  std::string text;
  const auto add = [&](std::uint64_t count, const char* one, const char* several) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + (count == 1 ? one : several);
  };
  add(faults.steps, " step that begins before the one before it ends",
      " steps that begin before the one before them ends");
  add(faults.crossings, " call that ends after the call that it began in",
      " calls that end after the call that they began in");
  add(faults.launches, " kernel that begins before its launch",
      " kernels that begin before their launch");
  add(faults.lengths, " operation that is longer than all steps from end to end",
      " operations that are longer than all steps from end to end");
  return text;
}

}  // namespace sidestream::analysis
