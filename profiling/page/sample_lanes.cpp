#include "profiling/page/sample_lanes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "profiling/ranges/system_counters.hpp"

namespace sidestream::page {
namespace {

struct Shown {
  std::string_view counter, series, name;
  double full = 0;  // 0: the largest value
};

constexpr double kPercent = 100;
constexpr std::array<Shown, 7> kShown = {{
    {ranges::kProcessCpu, "running", "process cpu, %", 0},  // 100 a processor
    {ranges::kMachineCpu, "busy", "machine cpu, %", kPercent},
    {ranges::kGpuUse, "kernels", "gpu use, %", kPercent},
    {ranges::kGpuClock, "core", "gpu clock, MHz", 0},
    {ranges::kGpuCounters, ranges::kSmsActive, "SMs active, %", kPercent},
    {ranges::kGpuCounters, ranges::kTensorActive, "Tensor Cores active, %", kPercent},
    {ranges::kGpuCounters, ranges::kDramRead, "DRAM read, %", kPercent},
}};

using BySeries = std::map<std::pair<std::string_view, std::string_view>, std::vector<SamplePoint>>;

double sum_of(const std::vector<SamplePoint>& points) {
  double sum = 0;
  for (const SamplePoint& one : points) sum += one.value;
  return sum;
}

void thin_out(std::vector<SamplePoint>& points, std::size_t limit) {
  const std::size_t group = (points.size() + limit - 1) / limit;
  if (group < 2) return;
  std::vector<SamplePoint> kept;
  for (std::size_t at = 0; at < points.size(); at += group) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), at + group));
    kept.push_back(*std::max_element(
        begin, end, [](const SamplePoint& a, const SamplePoint& b) { return a.value < b.value; }));
  }
  points = std::move(kept);
}

void add_busiest_disk(const BySeries& all, std::vector<SampleLane>& lanes) {
  const std::vector<SamplePoint>* busiest = nullptr;
  std::string_view disk;
  for (const auto& [series, points] : all) {
    if (series.first != ranges::kDiskBusy) continue;
    if (busiest != nullptr && sum_of(points) <= sum_of(*busiest)) continue;
    busiest = &points;
    disk = series.second;
  }
  if (busiest != nullptr)
    lanes.push_back({"disk " + std::string(disk) + ", %", kPercent, *busiest});
}

}  // namespace

std::vector<SampleLane> sample_lanes(const trace::RankTimeline& timeline, std::int64_t first_ns,
                                     std::int64_t last_ns,
                                     const std::function<std::int64_t(std::int64_t)>& common,
                                     std::size_t limit) {
  BySeries all;
  for (std::size_t i = 0; i < timeline.counters().size(); ++i) {
    const trace::CounterReading& one = timeline.counters()[i];
    if (one.time_ns < first_ns || one.time_ns > last_ns) continue;
    all[{timeline.names[one.counter], timeline.names[one.series]}].push_back(
        {common(one.time_ns), one.value});
  }
  std::vector<SampleLane> lanes;
  for (const Shown& shown : kShown) {
    const auto found = all.find({shown.counter, shown.series});
    if (found != all.end()) lanes.push_back({std::string(shown.name), shown.full, found->second});
  }
  add_busiest_disk(all, lanes);
  for (SampleLane& lane : lanes) {
    thin_out(lane.points, limit);
    for (const SamplePoint& one : lane.points) lane.full = std::max(lane.full, one.value);
  }
  return lanes;
}

nlohmann::ordered_json json_of(const std::vector<SampleLane>& lanes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SampleLane& lane : lanes) {
    nlohmann::ordered_json points = nlohmann::ordered_json::array();
    for (const SamplePoint& one : lane.points) {
      points.push_back(one.time_ns);
      points.push_back(one.value);
    }
    list.push_back({{"name", lane.name},
                    {"full", lane.full},
                    {"points", std::move(points)},
                    {"starts", lane.starts}});
  }
  return list;
}

}  // namespace sidestream::page
