#include "profiling/analysis/call_tree.hpp"

#include <algorithm>
#include <unordered_map>

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

std::vector<std::uint32_t> nested_order(const RankTimeline& timeline) {
  std::vector<std::uint32_t> rows;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    if (kind == Kind::kOperator || kind == Kind::kHostRange || kind == Kind::kRuntime)
      rows.push_back(static_cast<std::uint32_t>(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (timeline.track_of(a) != timeline.track_of(b))
      return timeline.track_of(a) < timeline.track_of(b);
    if (timeline.start_ns(a) != timeline.start_ns(b))
      return timeline.start_ns(a) < timeline.start_ns(b);
    return timeline.duration_ns(a) > timeline.duration_ns(b);
  });
  return rows;
}

// Launch -> time on the device.
std::unordered_map<std::uint64_t, std::int64_t> device_times(const RankTimeline& timeline) {
  std::unordered_map<std::uint64_t, std::int64_t> times;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (trace::is_device_work(timeline.kind(row)) && timeline.correlation(row) != 0)
      times[timeline.correlation(row)] += timeline.duration_ns(row);
  }
  return times;
}

}  // namespace

CallTree call_tree(const RankTimeline& timeline) {
  const auto on_device = device_times(timeline);
  CallTree tree;
  std::vector<Call>& list = tree.calls;
  std::vector<std::size_t> open;  // indices of enclosing calls, the innermost last
  for (const std::uint32_t row : nested_order(timeline)) {
    while (!open.empty() && (timeline.track_of(list[open.back()].row) != timeline.track_of(row) ||
                             timeline.end_ns(list[open.back()].row) <= timeline.start_ns(row)))
      open.pop_back();
    if (timeline.kind(row) == Kind::kRuntime) {
      const auto launched = on_device.find(timeline.correlation(row));
      if (launched == on_device.end() || open.empty()) continue;
      const bool first = tree.launched_by.try_emplace(launched->first, open.back()).second;
      if (first) list[open.back()].device_self_ns += launched->second;
      continue;
    }
    const std::size_t parent = open.empty() ? kNoParent : open.back();
    if (parent != kNoParent) {
      const std::int64_t inside_ns =
          std::min(timeline.end_ns(row), timeline.end_ns(list[parent].row)) -
          timeline.start_ns(row);
      list[parent].self_ns -= std::max<std::int64_t>(0, inside_ns);
    }
    open.push_back(list.size());
    list.push_back({.row = row, .parent = parent, .self_ns = timeline.duration_ns(row)});
  }
  for (std::size_t i = list.size(); i-- > 0;) {
    list[i].device_total_ns += list[i].device_self_ns;
    if (list[i].parent != kNoParent)
      list[list[i].parent].device_total_ns += list[i].device_total_ns;
  }
  return tree;
}

}  // namespace sidestream::analysis
