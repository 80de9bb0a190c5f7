#include "profiling/analysis/host_activity.hpp"

#include <algorithm>
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
  if (kind == Kind::kHostRange && what == NameClass::kCollectiveRange)
    return pieces.communication.push_back(interval);
  if (what == NameClass::kSyncCall) pieces.sync.push_back(interval);
  // Ranges cover whole steps and say nothing about activity.
  if (kind != Kind::kHostRange) pieces.active.push_back(interval);
}

bool is_host(Kind kind) {
  return kind == Kind::kRuntime || kind == Kind::kOperator || kind == Kind::kHostRange ||
         kind == Kind::kLock;
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

// A device that was idle until `stretch` began, and the call that launched what it began with.
struct FirstLaunch {
  std::uint64_t correlation;
  std::size_t stretch;
};

// Of every busy stretch that has one, sorted by correlation.
std::vector<FirstLaunch> first_launches(const RankTimeline& timeline, const IntervalSet& busy) {
  const std::vector<Interval>& stretches = busy.intervals();
  std::vector<std::uint64_t> first(stretches.size(), 0);
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (!trace::is_device_work(timeline.kind(row)) || timeline.correlation(row) == 0) continue;
    const std::int64_t start_ns = timeline.start_ns(row);
    const auto found = std::lower_bound(
        stretches.begin(), stretches.end(), start_ns,
        [](const Interval& one, std::int64_t time_ns) { return one.start_ns < time_ns; });
    if (found != stretches.end() && found->start_ns == start_ns)
      first[static_cast<std::size_t>(found - stretches.begin())] = timeline.correlation(row);
  }
  std::vector<FirstLaunch> launches;
  launches.reserve(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] != 0) launches.push_back({first[i], i});
  }
  std::sort(launches.begin(), launches.end(),
            [](const auto& a, const auto& b) { return a.correlation < b.correlation; });
  return launches;
}

// When the first call with that correlation began, for each stretch; INT64_MAX: not known.
std::vector<std::int64_t> launch_times(const RankTimeline& timeline, const IntervalSet& busy) {
  const std::vector<FirstLaunch> launches = first_launches(timeline, busy);
  std::vector<std::int64_t> times(busy.intervals().size(), INT64_MAX);
  for (std::size_t row = 0; row < timeline.size() && !launches.empty(); ++row) {
    if (timeline.kind(row) != Kind::kRuntime || timeline.correlation(row) == 0) continue;
    const std::uint64_t wanted = timeline.correlation(row);
    auto found = std::lower_bound(
        launches.begin(), launches.end(), wanted,
        [](const FirstLaunch& one, std::uint64_t id) { return one.correlation < id; });
    for (; found != launches.end() && found->correlation == wanted; ++found)
      times[found->stretch] = std::min(times[found->stretch], timeline.start_ns(row));
  }
  return times;
}

}  // namespace

IntervalSet launch_gaps(const RankTimeline& timeline, const IntervalSet& busy) {
  const std::vector<std::int64_t> launched_at = launch_times(timeline, busy);
  std::vector<Interval> gaps;
  for (std::size_t i = 1; i < busy.intervals().size(); ++i) {
    const Interval gap{busy.intervals()[i - 1].end_ns, busy.intervals()[i].start_ns};
    if (launched_at[i] != INT64_MAX && launched_at[i] > gap.start_ns)
      gaps.push_back({gap.start_ns, std::min(launched_at[i], gap.end_ns)});
  }
  return IntervalSet(std::move(gaps));
}

}  // namespace sidestream::analysis
