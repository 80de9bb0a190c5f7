#include "profiling/analysis/top_operations.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/host_activity.hpp"
#include "profiling/analysis/row_work.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

constexpr std::size_t kDeviceKinds = 3;

struct Sums {
  std::int64_t calls = 0, total_ns = 0;
  KnownWork flops, bytes;

  void add(const OperatorWork& work, std::int64_t duration_ns) {
    flops.add(work.flops, duration_ns);
    bytes.add(work.bytes, duration_ns);
  }
  void add(const Sums& other) {
    calls += other.calls;
    total_ns += other.total_ns;
    flops.add(other.flops.total(), other.flops.time_ns);
    bytes.add(other.bytes.total(), other.bytes.time_ns);
  }
};
using ByName = std::map<std::pair<std::string, Kind>, Sums>;

OperatorWork work_of_copy(const RankTimeline& timeline, std::size_t row) {
  const trace::DeviceDetail* detail = timeline.device(row);
  if (detail == nullptr || timeline.kind(row) == Kind::kKernel || detail->bytes == 0) return {};
  return {.flops = {}, .bytes = static_cast<double>(detail->bytes)};
}

void add_device_rank(const RankTimeline& timeline, ByName& all) {
  std::vector<std::array<Sums, kDeviceKinds>> of_name(timeline.names.size());
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (!trace::is_device_work(timeline.kind(row))) continue;
    Sums& sums = of_name[timeline.name_id(row)][static_cast<std::size_t>(timeline.kind(row))];
    ++sums.calls;
    sums.total_ns += timeline.duration_ns(row);
    sums.add(work_of_copy(timeline, row), timeline.duration_ns(row));
  }
  if (has_shapes(timeline)) {
    visit_kernel_work(timeline, call_tree(timeline),
                      [&](std::size_t row, const OperatorWork& work) {
                        of_name[timeline.name_id(row)][0].add(work, timeline.duration_ns(row));
                      });
  }
  for (trace::NameId id = 0; id < of_name.size(); ++id) {
    for (std::size_t kind = 0; kind < kDeviceKinds; ++kind) {
      const Sums& sums = of_name[id][kind];
      if (sums.calls > 0) all[{std::string(timeline.names[id]), static_cast<Kind>(kind)}].add(sums);
    }
  }
}

// Work is done in the whole of a call, time is counted where it is spent.
void add_host_rank(const RankTimeline& timeline, ByName& all) {
  RowWork work(timeline);
  const NameClasses classes(timeline.names);
  const bool launches_only = device_work_is_missing(timeline);
  for (const Call& one : call_tree(timeline).calls) {
    const Kind kind = timeline.kind(one.row);
    const bool phase =
        kind == Kind::kHostRange && classes[timeline.name_id(one.row)] == NameClass::kComputeRange;
    if (kind != Kind::kOperator && !phase) continue;
    Sums& sums = all[{std::string(timeline.name(one.row)), kind}];
    ++sums.calls;
    sums.total_ns += one.self_ns;
    if (!launches_only) sums.add(work.of(one.row), timeline.duration_ns(one.row));
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
    list.push_back(
        {.name = key.first,
         .kind = key.second,
         .calls = sums.calls,
         .total_ns = sums.total_ns,
         .share =
             total_ns == 0 ? 0 : static_cast<double>(sums.total_ns) / static_cast<double>(total_ns),
         .flops = sums.flops,
         .bytes = sums.bytes});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Operation& a, const Operation& b) { return a.total_ns > b.total_ns; });
  return list;
}

}  // namespace sidestream::analysis
