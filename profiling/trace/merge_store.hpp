// Events of the store as events of a Chrome trace, for sources that have no JSON of their own.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "profiling/trace/crossing_events.hpp"
#include "profiling/trace/merge.hpp"
#include "profiling/trace/merge_names.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

class StoreWriter {
 public:
  // Arrows only between events inside the cut.
  StoreWriter(const RankTimeline& timeline, MergeNames& names, const MergeCut& cut);

  // The event of a row, with its start and end on the clock of the output, and the end of the arrow
  // that leads to or from it.
  std::vector<std::string> events_of(std::size_t row, std::int64_t start_ns, std::int64_t end_ns);

  // Readings of one counter at one time, in rows of the counters: a counter event for Perfetto, of
  // the time since `start_ns`. `end` becomes the first row behind them.
  std::string counter_event(std::size_t first, std::size_t& end, std::int64_t start_ns,
                            std::int64_t time_ns) const;

 private:
  const RankTimeline& timeline_;
  MergeNames& names_;
  CrossingEvents crossing_;
  std::unordered_set<std::uint64_t> tied_;  // correlations with a call and work on the device
};

}  // namespace sidestream::trace
