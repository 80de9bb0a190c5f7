#include "profiling/analysis/kernel_table.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "profiling/analysis/row_work.hpp"
#include "profiling/analysis/utilisation.hpp"

namespace sidestream::analysis {
namespace {

using trace::RankTimeline;
using Triple = std::array<std::uint32_t, 3>;
using KernelLaunch = std::tuple<std::string_view, Triple, Triple, std::uint32_t, std::uint32_t>;

// A mean weighted by duration, over the calls that have a value.
struct WeightedMean {
  double sum = 0, weight = 0;

  void add(float value, std::int64_t duration_ns) {
    if (value < 0) return;
    sum += static_cast<double>(value) * static_cast<double>(duration_ns);
    weight += static_cast<double>(duration_ns);
  }
  std::optional<double> mean() const {
    return weight > 0 ? std::optional(sum / weight) : std::nullopt;
  }
};

struct KernelSums {
  KernelRow row;
  WeightedMean occupancy, blocks;
};

void add_call(KernelSums& sums, const trace::DeviceDetail& detail, std::int64_t duration_ns) {
  KernelRow& row = sums.row;
  row.shortest_ns = row.calls == 0 ? duration_ns : std::min(row.shortest_ns, duration_ns);
  row.longest_ns = std::max(row.longest_ns, duration_ns);
  row.total_ns += duration_ns;
  ++row.calls;
  sums.occupancy.add(detail.occupancy_percent, duration_ns);
  sums.blocks.add(detail.blocks_per_sm, duration_ns);
}

KernelLaunch key_of(const RankTimeline& timeline, std::size_t row,
                    const trace::DeviceDetail& detail) {
  return {timeline.name(row), detail.grid, detail.block, detail.registers_per_thread,
          detail.shared_memory_bytes};
}

void add_rank(std::map<KernelLaunch, KernelSums>& table, const RankTimeline& timeline,
              const CallTree& tree) {
  std::unordered_map<std::uint64_t, KernelSums*>
      known;  // by numbers: texts are compared once a kernel
  const auto sums_of = [&](std::size_t row, const trace::DeviceDetail& detail) -> KernelSums& {
    KernelSums*& place = known[std::uint64_t{timeline.name_id(row)} << 32 | detail.shape];
    if (place == nullptr) place = &table[key_of(timeline, row, detail)];
    return *place;
  };
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const auto detail = timeline.device(row);
    if (timeline.kind(row) != trace::Kind::kKernel || !detail) continue;
    add_call(sums_of(row, *detail), *detail, timeline.duration_ns(row));
  }
  if (!has_shapes(timeline)) return;
  visit_kernel_work(timeline, tree, [&](const KernelWork& one) {
    KernelRow& kernel = sums_of(one.row, *timeline.device(one.row)).row;
    kernel.flops.add(one.work.flops, timeline.duration_ns(one.row));
    kernel.bytes.add(one.work.bytes, timeline.duration_ns(one.row));
  });
}

}  // namespace

std::vector<KernelRow> kernel_table(const std::vector<RankView>& ranks,
                                    const std::vector<CallTree>& trees) {
  std::map<KernelLaunch, KernelSums> sums;
  for (std::size_t i = 0; i < ranks.size(); ++i) add_rank(sums, *ranks[i].timeline, trees[i]);
  std::vector<KernelRow> table;
  for (auto& [key, one] : sums) {
    KernelRow row = std::move(one.row);
    std::tie(row.name, row.grid, row.block, row.registers_per_thread, row.shared_memory_bytes) =
        key;
    row.tensor_cores = uses_tensor_cores(row.name);
    row.occupancy_percent = one.occupancy.mean();
    row.blocks_per_sm = one.blocks.mean();
    table.push_back(std::move(row));
  }
  std::stable_sort(table.begin(), table.end(),
                   [](const KernelRow& a, const KernelRow& b) { return a.total_ns > b.total_ns; });
  return table;
}

}  // namespace sidestream::analysis
