#include "profiling/analysis/device_activity.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "profiling/analysis/event_class.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

Interval interval_of(const RankTimeline& timeline, std::size_t row) {
  return {timeline.start_ns(row), timeline.end_ns(row)};
}

struct Pieces {
  std::vector<Interval> compute, communication, copies, graphs;
};

Pieces device_pieces(const RankTimeline& timeline, const NameClasses& classes) {
  Pieces pieces;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    if (kind == Kind::kGraph) pieces.graphs.push_back(interval_of(timeline, row));
    if (!trace::is_device_work(kind)) continue;
    const bool collective = classes[timeline.name_id(row)] == NameClass::kCollectiveKernel;
    std::vector<Interval>& into = kind != Kind::kKernel ? pieces.copies
                                  : collective          ? pieces.communication
                                                        : pieces.compute;
    into.push_back(interval_of(timeline, row));
  }
  return pieces;
}

// Per thread, because a collective in flight on its own lane takes nothing from the thread that
// computes, unless that one waits for it; nor does a loader thread beside it.
struct HostThread {
  std::vector<Interval> compute, communication, waits;  // for others, or for input
};

DeviceActivity host_activity(const RankTimeline& timeline, const NameClasses& classes) {
  std::map<std::uint32_t, HostThread> threads;
  bool computes_here = timeline.info.says_no_device;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const NameClass what = classes[timeline.name_id(row)];
    const bool range = timeline.kind(row) == Kind::kHostRange;
    const bool compute =
        timeline.kind(row) == Kind::kOperator || (range && what == NameClass::kComputeRange);
    const bool communication = range && what == NameClass::kCollectiveRange;
    computes_here = computes_here || communication || (range && what == NameClass::kComputeRange);
    if (compute) threads[timeline.track_of(row)].compute.push_back(interval_of(timeline, row));
    if (communication)
      threads[timeline.track_of(row)].communication.push_back(interval_of(timeline, row));
    if (range && (what == NameClass::kWaitRange || what == NameClass::kInputRange))
      threads[timeline.track_of(row)].waits.push_back(interval_of(timeline, row));
  }
  DeviceActivity activity;
  if (!computes_here) return activity;
  activity.where = Where::kHost;
  for (auto& [track, thread] : threads) {
    const IntervalSet own(std::move(thread.communication)), waits(std::move(thread.waits));
    activity.compute = activity.compute | (IntervalSet(std::move(thread.compute)) - (own | waits));
    activity.communication = activity.communication | own;
  }
  return activity;
}

using Lists = std::initializer_list<const std::vector<Interval>*>;

// Of all these events, those without a length too.
Interval window_of(Lists lists) {
  Interval window{INT64_MAX, INT64_MIN};
  for (const auto* list : lists) {
    for (const Interval& one : *list) {
      window.start_ns = std::min(window.start_ns, one.start_ns);
      window.end_ns = std::max(window.end_ns, one.end_ns);
    }
  }
  return window;
}

// Graphs alone are a device's work, too.
Interval device_window(const Pieces& pieces) {
  const Interval known = window_of({&pieces.compute, &pieces.communication, &pieces.copies});
  return known.start_ns <= known.end_ns ? known : window_of({&pieces.graphs});
}

}  // namespace

DeviceActivity device_activity(const RankTimeline& timeline) {
  const NameClasses classes(timeline.names);
  Pieces pieces = device_pieces(timeline, classes);
  const Interval window = device_window(pieces);
  if (window.start_ns > window.end_ns) {
    DeviceActivity activity = host_activity(timeline, classes);
    const IntervalSet busy = activity.busy();
    if (!busy.empty())
      activity.window = {busy.intervals().front().start_ns, busy.intervals().back().end_ns};
    return activity;
  }
  DeviceActivity activity;
  activity.where = Where::kDevice;
  activity.compute = IntervalSet(std::move(pieces.compute));
  activity.communication = IntervalSet(std::move(pieces.communication));
  activity.copies = IntervalSet(std::move(pieces.copies));
  const IntervalSet graphs(std::move(pieces.graphs));
  if (!graphs.empty()) activity.unknown = graphs - activity.busy();
  activity.window = window;
  return activity;
}

}  // namespace sidestream::analysis
