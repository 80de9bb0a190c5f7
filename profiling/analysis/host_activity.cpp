#include "profiling/analysis/host_activity.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "profiling/analysis/event_class.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

std::set<std::uint32_t> feeding_tracks(const RankTimeline& timeline, const NameClasses& classes) {
  std::set<std::uint32_t> tracks;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const NameClass what = classes[timeline.name_id(row)];
    const bool feeds = (timeline.kind(row) == Kind::kRuntime && what == NameClass::kLaunchCall) ||
                       (timeline.kind(row) == Kind::kHostRange && what == NameClass::kStepRange);
    if (feeds) tracks.insert(timeline.track_of(row));
  }
  return tracks;
}

struct HostPieces {
  std::vector<Interval> data, communication, locks, sync, active;
};

void sort_in(HostPieces& pieces, Kind kind, NameClass what, Interval interval) {
  if (kind == Kind::kLock) return pieces.locks.push_back(interval);
  if (kind == Kind::kHostRange && what == NameClass::kInputRange)
    return pieces.data.push_back(interval);
  if (kind == Kind::kHostRange && is_communication_range(what))
    return pieces.communication.push_back(interval);
  if (what == NameClass::kSyncCall) pieces.sync.push_back(interval);
  // Ranges cover whole steps and say nothing about activity.
  if (kind != Kind::kHostRange) pieces.active.push_back(interval);
}

bool is_host(Kind kind) {
  return kind == Kind::kRuntime || kind == Kind::kOperator || kind == Kind::kHostRange ||
         kind == Kind::kLock;
}

// As many as may be active: a list that grows as it is filled needs twice its memory.
std::size_t count_of_calls(const RankTimeline& timeline) {
  std::size_t count = 0;
  for (std::size_t row = 0; row < timeline.size(); ++row)
    count += timeline.kind(row) == Kind::kRuntime || timeline.kind(row) == Kind::kOperator;
  return count;
}

// The host communicates for its device: operations in flight have lanes of their own.
bool host_communicates(const RankTimeline& timeline, const NameClasses& classes) {
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kKernel &&
        classes[timeline.name_id(row)] == NameClass::kCollectiveKernel)
      return false;
  }
  return true;
}

}  // namespace

HostActivity host_activity(const RankTimeline& timeline) {
  const NameClasses classes(timeline.names);
  const bool any_lane = host_communicates(timeline, classes);
  const std::set<std::uint32_t> feeding = feeding_tracks(timeline, classes);
  std::vector<bool> counts(timeline.tracks().size(), false);
  for (const std::uint32_t track : feeding) counts[track] = true;
  HostPieces pieces;
  pieces.active.reserve(count_of_calls(timeline));
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    const NameClass what = classes[timeline.name_id(row)];
    const bool in_lane =
        any_lane && kind == Kind::kHostRange && what == NameClass::kCollectiveRange;
    if (!is_host(kind) || !(in_lane || counts[timeline.track_of(row)])) continue;
    sort_in(pieces, kind, what, {timeline.start_ns(row), timeline.end_ns(row)});
  }
  return {.data = IntervalSet(std::move(pieces.data)),
          .communication = IntervalSet(std::move(pieces.communication)),
          .locks = IntervalSet(std::move(pieces.locks)),
          .sync = IntervalSet(std::move(pieces.sync)),
          .active = IntervalSet(std::move(pieces.active))};
}

IntervalSet after_syncs(const IntervalSet& sync, const DeviceActivity& activity,
                        const IntervalSet& busy) {
  if (activity.where != Where::kDevice) return {};
  const std::vector<Interval>& stretches = busy.intervals();
  std::vector<Interval> after;
  for (const Interval& call : sync.intervals()) {
    const bool waited = activity.compute.length_within_ns(call) > 0 ||
                        activity.communication.length_within_ns(call) > 0;
    if (!waited) continue;
    const auto next = std::upper_bound(
        stretches.begin(), stretches.end(), call.end_ns,
        [](std::int64_t time_ns, const Interval& one) { return time_ns < one.start_ns; });
    // Another stream may be at work still, and nothing may follow.
    if (next != stretches.end() && std::prev(next)->end_ns <= call.end_ns)
      after.push_back({call.end_ns, next->start_ns});
  }
  return IntervalSet(std::move(after));
}

bool device_work_is_missing(const RankTimeline& timeline) {
  const NameClasses classes(timeline.names);
  bool launches = false;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (trace::is_device_work(timeline.kind(row))) return false;
    launches = launches || (timeline.kind(row) == Kind::kRuntime &&
                            classes[timeline.name_id(row)] == NameClass::kLaunchCall);
  }
  return launches;
}

namespace {

// The stretch that begins at this moment; nothing when none does.
std::optional<std::size_t> stretch_from(const IntervalSet& busy, std::int64_t start_ns) {
  const std::vector<Interval>& stretches = busy.intervals();
  const auto found = std::lower_bound(
      stretches.begin(), stretches.end(), start_ns,
      [](const Interval& one, std::int64_t time_ns) { return one.start_ns < time_ns; });
  if (found == stretches.end() || found->start_ns != start_ns) return std::nullopt;
  return static_cast<std::size_t>(found - stretches.begin());
}

// Rows of what busy stretches begin with, sorted by the call that launched them.
std::vector<std::uint32_t> first_rows(const RankTimeline& timeline, const IntervalSet& busy) {
  std::vector<std::uint32_t> rows;
  rows.reserve(busy.intervals().size());
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (trace::is_device_work(timeline.kind(row)) && timeline.correlation(row) != 0 &&
        stretch_from(busy, timeline.start_ns(row)))
      rows.push_back(static_cast<std::uint32_t>(row));
  }
  std::sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
    return timeline.correlation(a) < timeline.correlation(b);
  });
  return rows;
}

}  // namespace

LaunchGaps launch_gaps(const RankTimeline& timeline, const IntervalSet& busy) {
  const std::vector<std::uint32_t> launched = first_rows(timeline, busy);
  std::vector<std::int64_t> times(busy.intervals().size(), LaunchGaps::kNotKnown);
  for (std::size_t row = 0; row < timeline.size() && !launched.empty(); ++row) {
    if (timeline.kind(row) != Kind::kRuntime || timeline.correlation(row) == 0) continue;
    const std::uint64_t wanted = timeline.correlation(row);
    auto found = std::lower_bound(launched.begin(), launched.end(), wanted,
                                  [&](std::uint32_t one, std::uint64_t correlation) {
                                    return timeline.correlation(one) < correlation;
                                  });
    for (; found != launched.end() && timeline.correlation(*found) == wanted; ++found) {
      std::int64_t& time = times[*stretch_from(busy, timeline.start_ns(*found))];
      time = std::min(time, timeline.start_ns(row));
    }
  }
  return {busy, std::move(times)};
}

IntervalSet LaunchGaps::within(Interval window) const {
  const std::vector<Interval>& busy = busy_.intervals();
  const auto after = std::upper_bound(
      busy.begin(), busy.end(), window.start_ns,
      [](std::int64_t time_ns, const Interval& one) { return time_ns < one.start_ns; });
  std::vector<Interval> gaps;
  for (auto i = std::max<std::size_t>(1, static_cast<std::size_t>(after - busy.begin()));
       i < busy.size() && busy[i - 1].end_ns < window.end_ns; ++i) {
    if (launched_at_[i] == kNotKnown) continue;
    gaps.push_back({std::max(busy[i - 1].end_ns, window.start_ns),
                    std::min({launched_at_[i], busy[i].start_ns, window.end_ns})});
  }
  return IntervalSet(std::move(gaps));
}

}  // namespace sidestream::analysis
