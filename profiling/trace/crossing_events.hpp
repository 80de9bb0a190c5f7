// Events of one thread or stream that overlap without one lying inside of the other: kernels of a
// stream of which the second starts before the first has ended, mostly. Perfetto draws nested
// events and drops what crosses one, so a merged trace puts these on lanes beside their track.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

class CrossingEvents {
 public:
  explicit CrossingEvents(const RankTimeline& timeline);

  // Process and thread as the track has them.
  struct Place {
    std::string_view process, thread;
  };
  // 0: it may stay on its track; N: the N-th lane beside it. Times are those of the file.
  int lane(const Place& place, std::int64_t start_ns, std::int64_t duration_ns) const;
  // Of an arrow, which belongs to what starts at its time.
  int lane_of_arrow(const Place& place, std::int64_t time_ns) const;

 private:
  struct Moved {
    std::string process, thread;
    std::int64_t duration_ns = 0;
    int lane = 0;
  };
  int lane(const Place& place, std::int64_t start_ns,
           const std::function<bool(const Moved& one)>& fits) const;

  std::multimap<std::int64_t, Moved> moved_;  // by start: few, mostly none
};

}  // namespace sidestream::trace
