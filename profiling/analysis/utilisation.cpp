#include "profiling/analysis/utilisation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>

#include "profiling/analysis/device_counters.hpp"

namespace sidestream::analysis {
namespace {

// PyProf's list, which profilers copied, and what newer libraries call theirs: CUTLASS 3's classes,
// FlashAttention, cuDNN's attention.
constexpr std::array<std::string_view, 26> kTensorCoreWords = {
    "884",         "1688",       "16816",         "hmma",           "imma",     "bmma",
    "xmma_gemm",   "xmma_fprop", "xmma_dgrad",    "xmma_wgrad",     "tensorop", "wgmma",
    "nvjet",       "flash_fwd",  "flash_bwd",     "FlashAttn",      "fmha",     "flash_fprop",
    "flash_bprop", "Gmma",       "CollectiveMma", "cutlass3x_sm90", "sm100_",   "wmma",
    "_MI16x16x",   "_MI32x32x"};

// What the same libraries call kernels of the ordinary units: their names go on like the others.
constexpr std::array<std::string_view, 3> kOrdinaryWords = {"ffma", "simt", "Simt"};

struct Sums {
  double window_ns = 0, kernels_ns = 0;
  double compute_ns = 0, tensor_core_ns = 0, counted_ns = 0;
  double sm_ns = 0, occupied_ns = 0, occupancy_known_ns = 0;
  bool sm_known = false;
};

// A kernel reaches this share of the SMs of its device.
struct SmUse {
  Interval interval;
  double share = 0;
};

std::optional<double> sm_share(const trace::RankTimeline& timeline,
                               const trace::DeviceDetail& detail) {
  const auto device = timeline.info.devices.find(detail.device);
  if (device == timeline.info.devices.end() || device->second.sm_count <= 0) return std::nullopt;
  const double blocks = static_cast<double>(detail.grid[0]) * detail.grid[1] * detail.grid[2];
  return std::min(1.0, blocks / device->second.sm_count);
}

// The largest share at each moment, added up over time.
double sm_time_ns(const std::vector<SmUse>& uses) {
  struct Edge {
    std::int64_t time_ns;
    double share;
    bool begins;
  };
  std::vector<Edge> edges;
  for (const SmUse& use : uses) {
    edges.push_back({use.interval.start_ns, use.share, true});
    edges.push_back({use.interval.end_ns, use.share, false});
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; });
  std::map<double, int> running;  // share -> kernels
  double sum_ns = 0;
  std::int64_t before_ns = 0;
  for (const Edge& edge : edges) {
    if (!running.empty())
      sum_ns += running.rbegin()->first * static_cast<double>(edge.time_ns - before_ns);
    before_ns = edge.time_ns;
    const int kernels = running[edge.share] += edge.begins ? 1 : -1;
    if (kernels == 0) running.erase(edge.share);
  }
  return sum_ns;
}

// What the name of a kernel says, looked at once for every name.
struct NameFacts {
  bool is_known = false;
  bool is_collective = false;
  bool is_counted = false;  // by Nsight Compute
  bool uses_tensor_cores = false;
};

class KernelNames {
 public:
  KernelNames(const trace::NameTable& names, const TensorCoreCounters& counters)
      : names_(names), counters_(counters), facts_(names.size()) {}

  const NameFacts& operator[](trace::NameId id) {
    NameFacts& facts = facts_[id];
    if (facts.is_known) return facts;
    const std::string_view name = names_[id];
    const auto counted = counters_ ? counters_(name) : std::nullopt;
    return facts = {true, trace::is_collective_kernel(name), counted.has_value(),
                    counted.value_or(uses_tensor_cores(name))};
  }

 private:
  const trace::NameTable& names_;
  const TensorCoreCounters& counters_;
  std::vector<NameFacts> facts_;
};

void add_kernel(const std::optional<trace::DeviceDetail>& detail, const NameFacts& name,
                double inside_ns, Sums& sums) {
  if (!name.is_collective) {
    sums.compute_ns += inside_ns;
    if (name.is_counted) sums.counted_ns += inside_ns;
    if (name.uses_tensor_cores) sums.tensor_core_ns += inside_ns;
  }
  if (!detail || detail->occupancy_percent < 0) return;
  sums.occupancy_known_ns += inside_ns;
  sums.occupied_ns += inside_ns * static_cast<double>(detail->occupancy_percent) / 100;
}

void add_rank(const RankView& rank, const TensorCoreCounters& counters, Sums& sums) {
  if (rank.activity.where != Where::kDevice) return;
  const trace::RankTimeline& timeline = *rank.timeline;
  const IntervalSet kernels = rank.activity.compute | rank.activity.communication;
  for (const StepRow& step : rank.steps) {
    if (step.is_singular()) continue;
    sums.window_ns += static_cast<double>(step.window.length_ns());
    sums.kernels_ns += static_cast<double>(kernels.length_within_ns(step.window));
  }
  const IntervalSet steps = rank.counted_windows();
  std::vector<SmUse> uses;
  KernelNames names(timeline.names, counters);
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != trace::Kind::kKernel) continue;
    const Interval whole{timeline.start_ns(row), timeline.end_ns(row)};
    const std::int64_t inside_ns = steps.length_within_ns(whole);
    if (inside_ns == 0) continue;
    const auto detail = timeline.device(row);
    add_kernel(detail, names[timeline.name_id(row)], static_cast<double>(inside_ns), sums);
    const auto share = detail ? sm_share(timeline, *detail) : std::nullopt;
    if (!share) continue;
    sums.sm_known = true;
    const bool cut = inside_ns < whole.length_ns();
    const IntervalSet inside = cut ? steps.within(whole) : IntervalSet({whole});
    for (const Interval& part : inside.intervals()) uses.push_back({part, *share});
  }
  sums.sm_ns += sm_time_ns(uses);
}

std::string tensor_core_source(const Sums& sums) {
  if (sums.counted_ns == 0) return "kernel names";
  if (sums.counted_ns == sums.compute_ns) return "counters";
  const long percent = std::lround(100 * sums.counted_ns / sums.compute_ns);
  return "counters for " + std::to_string(percent) + " % of the time, else kernel names";
}

}  // namespace

bool uses_tensor_cores(std::string_view kernel) {
  const auto is_in_name = [&](std::string_view word) {
    return kernel.find(word) != std::string_view::npos;
  };
  return std::any_of(kTensorCoreWords.begin(), kTensorCoreWords.end(), is_in_name) &&
         std::none_of(kOrdinaryWords.begin(), kOrdinaryWords.end(), is_in_name);
}

Utilisation find_utilisation(const std::vector<RankView>& ranks,
                             const TensorCoreCounters& counters) {
  Sums sums;
  for (const RankView& rank : ranks) add_rank(rank, counters, sums);
  Utilisation found;
  if (sums.window_ns > 0) found.gpu_utilisation = sums.kernels_ns / sums.window_ns;
  if (sums.window_ns > 0 && sums.sm_known) found.sm_efficiency = sums.sm_ns / sums.window_ns;
  if (sums.occupancy_known_ns > 0) found.occupancy = sums.occupied_ns / sums.occupancy_known_ns;
  if (sums.compute_ns > 0) {
    found.tensor_core_share = sums.tensor_core_ns / sums.compute_ns;
    found.tensor_core_source = tensor_core_source(sums);
  }
  if (const auto sampled = device_counters(ranks).tensor_core_share()) {
    found.tensor_core_share = sampled;
    found.tensor_core_source = "counters, of the cycles of SMs with work";
  }
  return found;
}

}  // namespace sidestream::analysis
