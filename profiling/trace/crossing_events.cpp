#include "profiling/trace/crossing_events.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sidestream::trace {
namespace {

// The ends of the events that are open on one lane, the innermost last.
using OpenEnds = std::vector<std::int64_t>;

bool takes(OpenEnds& open, std::int64_t start_ns, std::int64_t end_ns) {
  while (!open.empty() && open.back() <= start_ns) open.pop_back();
  if (!open.empty() && open.back() < end_ns) return false;
  open.push_back(end_ns);
  return true;
}

bool is_drawn_as_slice(Kind kind) { return kind != Kind::kMemory && kind != Kind::kUnfinished; }

// Of every track, in the order in which events have to be drawn: the outer one first.
std::vector<std::vector<std::uint32_t>> rows_of_tracks(const RankTimeline& timeline) {
  std::vector<std::vector<std::uint32_t>> tracks(timeline.tracks().size());
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (is_drawn_as_slice(timeline.kind(row)))
      tracks[timeline.track_of(row)].push_back(static_cast<std::uint32_t>(row));
  }
  for (std::vector<std::uint32_t>& rows : tracks)
    std::sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
      return timeline.start_ns(a) != timeline.start_ns(b)
                 ? timeline.start_ns(a) < timeline.start_ns(b)
                 : timeline.duration_ns(a) > timeline.duration_ns(b);
    });
  return tracks;
}

}  // namespace

CrossingEvents::CrossingEvents(const RankTimeline& timeline) {
  for (const std::vector<std::uint32_t>& rows : rows_of_tracks(timeline)) {
    std::vector<OpenEnds> lanes(1);
    for (const std::uint32_t row : rows) {
      std::size_t lane = 0;
      while (!takes(lanes[lane], timeline.start_ns(row), timeline.end_ns(row))) {
        if (++lane == lanes.size()) lanes.emplace_back();
      }
      if (lane == 0) continue;
      const Track& track = timeline.tracks()[timeline.track_of(row)];
      moved_.insert({timeline.start_ns(row),
                     {.process = track.process,
                      .thread = track.thread,
                      .duration_ns = timeline.duration_ns(row),
                      .lane = static_cast<int>(lane)}});
    }
  }
}

int CrossingEvents::lane(const Place& place, std::int64_t start_ns,
                         const std::function<bool(const Moved& one)>& fits) const {
  const auto [begin, end] = moved_.equal_range(start_ns);
  const auto found = std::find_if(begin, end, [&](const auto& entry) {
    const Moved& one = entry.second;
    return one.process == place.process && one.thread == place.thread && fits(one);
  });
  return found == end ? 0 : found->second.lane;
}

int CrossingEvents::lane(const Place& place, std::int64_t start_ns,
                         std::int64_t duration_ns) const {
  return lane(place, start_ns, [&](const Moved& one) { return one.duration_ns == duration_ns; });
}

int CrossingEvents::lane_of_arrow(const Place& place, std::int64_t time_ns) const {
  return lane(place, time_ns, [](const Moved&) { return true; });
}

}  // namespace sidestream::trace
