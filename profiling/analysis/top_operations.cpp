#include "profiling/analysis/top_operations.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "profiling/analysis/self_times.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

struct Sums {
  std::int64_t calls = 0, total_ns = 0, bytes = 0;
};
using ByName = std::map<std::pair<std::string, Kind>, Sums>;

void add_device_rank(const RankTimeline& timeline, ByName& all) {
  std::vector<std::array<Sums, 3>> of_name(timeline.names.size());
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (!trace::is_device_work(timeline.kind(row))) continue;
    Sums& sums = of_name[timeline.name_id(row)][static_cast<std::size_t>(timeline.kind(row))];
    ++sums.calls;
    sums.total_ns += timeline.duration_ns(row);
    if (const auto* detail = timeline.device(row))
      sums.bytes += static_cast<std::int64_t>(detail->bytes);
  }
  for (trace::NameId id = 0; id < of_name.size(); ++id) {
    for (std::size_t kind = 0; kind < 3; ++kind) {
      const Sums& sums = of_name[id][kind];
      if (sums.calls == 0) continue;
      Sums& into = all[{std::string(timeline.names[id]), static_cast<Kind>(kind)}];
      into.calls += sums.calls;
      into.total_ns += sums.total_ns;
      into.bytes += sums.bytes;
    }
  }
}

void add_host_rank(const RankTimeline& timeline, ByName& all) {
  for (const SelfTime& one : self_times(timeline)) {
    if (timeline.kind(one.row) != Kind::kOperator) continue;
    Sums& sums = all[{std::string(timeline.name(one.row)), Kind::kOperator}];
    ++sums.calls;
    sums.total_ns += one.self_ns;
  }
}

}  // namespace

std::vector<Operation> operations(const std::vector<RankView>& ranks) {
  ByName all;
  for (const RankView& rank : ranks) {
    if (rank.activity.where == Where::kDevice)
      add_device_rank(*rank.timeline, all);
    else
      add_host_rank(*rank.timeline, all);
  }
  std::int64_t total_ns = 0;
  for (const auto& [key, sums] : all) total_ns += sums.total_ns;
  std::vector<Operation> list;
  for (const auto& [key, sums] : all) {
    const bool copies = key.second == Kind::kMemcpy || key.second == Kind::kMemset;
    list.push_back(
        {.name = key.first,
         .kind = key.second,
         .calls = sums.calls,
         .total_ns = sums.total_ns,
         .share =
             total_ns == 0 ? 0 : static_cast<double>(sums.total_ns) / static_cast<double>(total_ns),
         .bytes = copies ? sums.bytes : -1});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Operation& a, const Operation& b) { return a.total_ns > b.total_ns; });
  return list;
}

}  // namespace sidestream::analysis
