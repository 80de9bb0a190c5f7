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
      if (lane > 0)
        moved_.insert({timeline.start_ns(row),
                       {.duration_ns = timeline.duration_ns(row), .lane = static_cast<int>(lane)}});
    }
  }
}

int CrossingEvents::lane(std::int64_t start_ns, std::int64_t duration_ns) const {
  const auto [begin, end] = moved_.equal_range(start_ns);
  const auto found = std::find_if(
      begin, end, [&](const auto& one) { return one.second.duration_ns == duration_ns; });
  return found == end ? 0 : found->second.lane;
}

int CrossingEvents::lane_of_arrow(std::int64_t time_ns) const {
  const auto found = moved_.find(time_ns);
  return found == moved_.end() ? 0 : found->second.lane;
}

}  // namespace sidestream::trace
