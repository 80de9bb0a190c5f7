// Finds the track of an event by the texts of its
// process and thread without making a string each time.
#pragma once

#include <string_view>
#include <unordered_map>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

class TrackCache {
 public:
  explicit TrackCache(RankTimeline& timeline) : timeline_(timeline) {}

  std::uint32_t find(std::string_view process, std::string_view thread) {
    if (is(last_, process, thread)) return last_;
    const std::uint64_t key = hash_of(process) * 31 + hash_of(thread);
    const auto known = tracks_.find(key);
    if (known != tracks_.end() && is(known->second, process, thread)) return last_ = known->second;
    last_ = timeline_.track(process, thread);
    tracks_[key] = last_;
    return last_;
  }

 private:
  bool is(std::uint32_t track, std::string_view process, std::string_view thread) const {
    const auto& tracks = timeline_.tracks();
    return track < tracks.size() && tracks[track].process == process &&
           tracks[track].thread == thread;
  }

  RankTimeline& timeline_;
  std::unordered_map<std::uint64_t, std::uint32_t> tracks_;
  std::uint32_t last_ = kNone;
};

}  // namespace sidestream::trace
