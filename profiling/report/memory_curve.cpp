#include "profiling/report/memory_curve.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace sidestream::report {
namespace {

using Json = nlohmann::ordered_json;
using Point = std::pair<std::int64_t, std::int64_t>;  // time, bytes

std::map<int, std::vector<Point>> curves_of(const trace::RankTimeline& timeline) {
  std::map<int, std::vector<Point>> curves;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const trace::MemoryDetail* detail = timeline.memory(row);
    if (detail != nullptr && detail->allocated_bytes >= 0)
      curves[detail->device].emplace_back(timeline.start_ns(row), detail->allocated_bytes);
  }
  for (auto& [device, curve] : curves) std::stable_sort(curve.begin(), curve.end());
  return curves;
}

std::vector<Point> thinned(const std::vector<Point>& curve, std::size_t points) {
  if (curve.size() <= points) return curve;
  const std::size_t stretch = (2 * curve.size() + points - 1) / points;
  std::vector<Point> kept;
  for (std::size_t at = 0; at < curve.size(); at += stretch) {
    const auto begin = curve.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        curve.begin() + static_cast<std::ptrdiff_t>(std::min(at + stretch, curve.size()));
    const auto by_bytes = [](const Point& a, const Point& b) { return a.second < b.second; };
    auto [low, high] = std::minmax_element(begin, end, by_bytes);
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  return kept;
}

}  // namespace

Json memory_curves(const analysis::Analysis& all, std::size_t points) {
  Json list = Json::array();
  for (const analysis::RankView& view : all.ranks) {
    for (const auto& [device, curve] : curves_of(*view.timeline)) {
      Json flat = Json::array();
      for (const auto& [time_ns, bytes] : thinned(curve, points))
        flat.push_back({time_ns - curve.front().first, bytes});
      list.push_back({{"rank", view.timeline->info.rank},
                      {"window", view.timeline->info.window},
                      {"device", device},
                      {"points", std::move(flat)}});
    }
  }
  return list;
}

}  // namespace sidestream::report
