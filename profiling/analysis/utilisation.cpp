#include "profiling/analysis/utilisation.hpp"

#include <algorithm>
#include <array>

namespace sidestream::analysis {
namespace {

// PyProf's list, which profilers copied, and what Hopper's libraries call theirs.
constexpr std::array<std::string_view, 22> kTensorCoreWords = {
    "884",       "1688",       "16816",      "hmma",       "imma",           "bmma",
    "xmma_gemm", "xmma_fprop", "xmma_dgrad", "xmma_wgrad", "tensorop",       "wgmma",
    "nvjet",     "flash_fwd",  "flash_bwd",  "fmha",       "cutlass3x_sm90", "sm90_gemm",
    "sm100_",    "wmma",       "_MI16x16x",  "_MI32x32x"};

struct Sums {
  double window_ns = 0, kernels_ns = 0;
  double compute_ns = 0, tensor_core_ns = 0;
  double all_kernels_ns = 0, sm_ns = 0, sm_known_ns = 0, occupied_ns = 0, occupancy_known_ns = 0;
};

void add_kernel(const trace::RankTimeline& timeline, std::size_t row, Sums& sums) {
  const auto duration_ns = static_cast<double>(timeline.duration_ns(row));
  if (!trace::is_collective_kernel(timeline.name(row))) {
    sums.compute_ns += duration_ns;
    if (uses_tensor_cores(timeline.name(row))) sums.tensor_core_ns += duration_ns;
  }
  const trace::DeviceDetail* detail = timeline.device(row);
  if (detail == nullptr) return;
  if (detail->occupancy_percent >= 0) {
    sums.occupancy_known_ns += duration_ns;
    sums.occupied_ns += duration_ns * static_cast<double>(detail->occupancy_percent) / 100;
  }
  const auto device = timeline.info.devices.find(detail->device);
  if (device == timeline.info.devices.end() || device->second.sm_count <= 0) return;
  const double blocks = static_cast<double>(detail->grid[0]) * detail->grid[1] * detail->grid[2];
  sums.sm_known_ns += duration_ns;
  sums.sm_ns += duration_ns * std::min(1.0, blocks / device->second.sm_count);
}

void add_rank(const RankView& rank, Sums& sums) {
  if (rank.activity.where != Where::kDevice) return;
  const IntervalSet kernels = rank.activity.compute | rank.activity.communication;
  for (const StepRow& step : rank.steps) {
    sums.window_ns += static_cast<double>(step.window.length_ns());
    sums.kernels_ns += static_cast<double>(kernels.length_within_ns(step.window));
  }
  for (std::size_t row = 0; row < rank.timeline->size(); ++row) {
    if (rank.timeline->kind(row) == trace::Kind::kKernel) add_kernel(*rank.timeline, row, sums);
  }
}

}  // namespace

bool uses_tensor_cores(std::string_view kernel) {
  return std::any_of(kTensorCoreWords.begin(), kTensorCoreWords.end(), [&](std::string_view word) {
    return kernel.find(word) != std::string_view::npos;
  });
}

Utilisation find_utilisation(const std::vector<RankView>& ranks) {
  Sums sums;
  for (const RankView& rank : ranks) add_rank(rank, sums);
  Utilisation found;
  if (sums.window_ns > 0) found.gpu_utilisation = sums.kernels_ns / sums.window_ns;
  if (sums.window_ns > 0 && sums.sm_known_ns > 0) found.sm_efficiency = sums.sm_ns / sums.window_ns;
  if (sums.occupancy_known_ns > 0) found.occupancy = sums.occupied_ns / sums.occupancy_known_ns;
  if (sums.compute_ns > 0) {
    found.tensor_core_share = sums.tensor_core_ns / sums.compute_ns;
    found.tensor_core_source = "kernel names";
  }
  return found;
}

}  // namespace sidestream::analysis
