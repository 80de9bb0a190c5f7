#include "profiling/analysis/utilisation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "profiling/analysis/device_counters.hpp"
#include "profiling/analysis/verdict.hpp"

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

struct UseSums {
  double window_ns = 0, kernels_ns = 0;
  double compute_ns = 0, tensor_core_ns = 0, counted_ns = 0;
  double sm_ns = 0, occupied_ns = 0, occupancy_known_ns = 0;
  bool sm_known = false;
};

std::optional<double> sm_share(const trace::RankTimeline& timeline,
                               const trace::DeviceDetail& detail) {
  const auto device = timeline.info.devices.find(detail.device);
  if (device == timeline.info.devices.end() || device->second.sm_count <= 0) return std::nullopt;
  const double blocks = static_cast<double>(detail.grid[0]) * detail.grid[1] * detail.grid[2];
  return std::min(1.0, blocks / device->second.sm_count);
}

// The largest share of the SMs at each moment, added up over the time of steps. Kernels are to be
// added in the order of their start.
class SmTime {
 public:
  explicit SmTime(const IntervalSet& steps) : steps_(steps) {}

  void add(Interval kernel, double share) {
    end_kernels_until(kernel.start_ns);
    advance(kernel.start_ns);
    ++running_[share];
    ends_.push({kernel.end_ns, share});
  }
  double take_ns() {
    end_kernels_until(INT64_MAX);
    return sum_ns_;
  }

 private:
  struct End {
    std::int64_t time_ns;
    double share;
    bool operator>(const End& other) const { return time_ns > other.time_ns; }
  };

  void advance(std::int64_t time_ns) {
    if (!running_.empty())
      sum_ns_ += running_.rbegin()->first *
                 static_cast<double>(steps_.length_within_ns({before_ns_, time_ns}));
    before_ns_ = time_ns;
  }
  void end_kernels_until(std::int64_t time_ns) {
    for (; !ends_.empty() && ends_.top().time_ns <= time_ns; ends_.pop()) {
      advance(ends_.top().time_ns);
      const auto found = running_.find(ends_.top().share);
      if (--found->second == 0) running_.erase(found);
    }
  }

  const IntervalSet& steps_;
  std::map<double, int> running_;  // share -> kernels
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::int64_t before_ns_ = 0;
  double sum_ns_ = 0;
};

// Of these rows. Nothing when the file does not say how large they or their device are.
std::optional<double> sm_time_ns(const trace::RankTimeline& timeline,
                                 std::vector<std::uint32_t> rows, const IntervalSet& steps) {
  const auto by_start = [&](std::uint32_t a, std::uint32_t b) {
    return timeline.start_ns(a) < timeline.start_ns(b);
  };
  if (!std::is_sorted(rows.begin(), rows.end(), by_start))
    std::sort(rows.begin(), rows.end(), by_start);
  SmTime time(steps);
  bool known = false;
  for (const std::uint32_t row : rows) {
    const auto detail = timeline.device(row);
    const auto share = detail ? sm_share(timeline, *detail) : std::nullopt;
    if (!share) continue;
    known = true;
    time.add({timeline.start_ns(row), timeline.end_ns(row)}, *share);
  }
  return known ? std::optional(time.take_ns()) : std::nullopt;
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
                double inside_ns, UseSums& sums) {
  if (!name.is_collective) {
    sums.compute_ns += inside_ns;
    if (name.is_counted) sums.counted_ns += inside_ns;
    if (name.uses_tensor_cores) sums.tensor_core_ns += inside_ns;
  }
  if (!detail || detail->occupancy_percent < 0) return;
  sums.occupancy_known_ns += inside_ns;
  sums.occupied_ns += inside_ns * static_cast<double>(detail->occupancy_percent) / 100;
}

void add_rank(const RankView& rank, const TensorCoreCounters& counters, UseSums& sums) {
  if (rank.activity.where != Where::kDevice) return;
  const trace::RankTimeline& timeline = *rank.timeline;
  const IntervalSet kernels = rank.activity.compute | rank.activity.communication;
  for (const StepRow& step : rank.steps) {
    if (!rank.counts(step)) continue;
    sums.window_ns += static_cast<double>(step.window.length_ns());
    sums.kernels_ns += static_cast<double>(kernels.length_within_ns(step.window));
  }
  const IntervalSet steps = rank.counted_windows();
  std::vector<std::uint32_t> kernel_rows;
  KernelNames names(timeline.names, counters);
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != trace::Kind::kKernel) continue;
    const Interval whole{timeline.start_ns(row), timeline.end_ns(row)};
    const std::int64_t inside_ns = steps.length_within_ns(whole);
    if (inside_ns == 0) continue;
    add_kernel(timeline.device(row), names[timeline.name_id(row)], static_cast<double>(inside_ns),
               sums);
    kernel_rows.push_back(static_cast<std::uint32_t>(row));
  }
  const auto sm_ns = sm_time_ns(timeline, std::move(kernel_rows), steps);
  sums.sm_known = sums.sm_known || sm_ns;
  sums.sm_ns += sm_ns.value_or(0);
}

std::string tensor_core_source(const UseSums& sums) {
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
  UseSums sums;
  for (const RankView& rank : ranks) add_rank(rank, counters, sums);
  Utilisation found;
  const bool all_known = sums.window_ns > 0 && !has_hidden_kernels(ranks);
  if (all_known) found.gpu_utilisation = sums.kernels_ns / sums.window_ns;
  if (all_known && sums.sm_known) found.sm_efficiency = sums.sm_ns / sums.window_ns;
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
