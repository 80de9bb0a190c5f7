#include "profiling/analysis/host_activity.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

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

}  // namespace

HostActivity host_activity(const RankTimeline& timeline) {
  const NameClasses classes(timeline.names);
  const std::set<std::uint32_t> feeding = feeding_tracks(timeline, classes);
  std::vector<bool> counts(timeline.tracks().size(), false);
  for (const std::uint32_t track : feeding) counts[track] = true;
  HostPieces pieces;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (!is_host(timeline.kind(row)) || !counts[timeline.track_of(row)]) continue;
    sort_in(pieces, timeline.kind(row), classes[timeline.name_id(row)],
            {timeline.start_ns(row), timeline.end_ns(row)});
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

IntervalSet launch_gaps(const RankTimeline& timeline, const IntervalSet& busy) {
  // Start of a busy stretch -> its first event's launch.
  std::unordered_map<std::int64_t, std::uint64_t> first_at;
  for (const Interval& stretch : busy.intervals()) first_at[stretch.start_ns] = 0;
  std::unordered_map<std::uint64_t, std::int64_t> launched_at;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (!trace::is_device_work(timeline.kind(row)) || timeline.correlation(row) == 0) continue;
    const auto stretch = first_at.find(timeline.start_ns(row));
    if (stretch == first_at.end()) continue;
    stretch->second = timeline.correlation(row);
    launched_at[stretch->second] = INT64_MAX;
  }
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != Kind::kRuntime) continue;
    const auto wanted = launched_at.find(timeline.correlation(row));
    if (wanted != launched_at.end())
      wanted->second = std::min(wanted->second, timeline.start_ns(row));
  }
  std::vector<Interval> gaps;
  for (std::size_t i = 1; i < busy.intervals().size(); ++i) {
    const Interval gap{busy.intervals()[i - 1].end_ns, busy.intervals()[i].start_ns};
    const auto launch = launched_at.find(first_at[gap.end_ns]);
    if (launch == launched_at.end() || launch->second == INT64_MAX) continue;
    gaps.push_back({gap.start_ns, std::min(launch->second, gap.end_ns)});
  }
  return IntervalSet(std::move(gaps));
}

}  // namespace sidestream::analysis
