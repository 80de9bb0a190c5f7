// System samples as lanes of the timeline: a few counters that say how busy the machine was.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::page {

struct SamplePoint {
  std::int64_t time_ns = 0;
  double value = 0;
};

struct SampleLane {
  std::string name;  // "process cpu, %"
  double full = 0;   // of the scale: 100 for a percentage, else the largest value
  std::vector<SamplePoint> points = {};
  // The first point of each recording: what was before it is not known.
  std::vector<std::size_t> starts = {0};
};

// Inside of [first_ns, last_ns], which is in the timeline's own time; `common` leads to the time of
// the result. Of more than `limit` points each kept one is the largest of several. Of the disks
// only the busiest.
std::vector<SampleLane> sample_lanes(const trace::RankTimeline& timeline, std::int64_t first_ns,
                                     std::int64_t last_ns,
                                     const std::function<std::int64_t(std::int64_t)>& common,
                                     std::size_t limit = 2000);

// [{"name", "full", "points": [time, value, time, value, ..], "starts": [0, ..]}, ..]
nlohmann::ordered_json json_of(const std::vector<SampleLane>& lanes);

}  // namespace sidestream::page
