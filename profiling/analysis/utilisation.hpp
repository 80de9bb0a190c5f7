// How well the devices were used, as far as a trace tells.
//
// All of steps only: kernels are cut at their ends. GPU utilisation is the union of all kernels
// over the time of the steps; nothing where CUDA graphs hide kernels. Estimated SM efficiency is
// the share of SMs that the blocks of a kernel can reach, over the time of the steps; where kernels
// run at the same time the largest share counts, so that it is never above the utilisation.
// Estimated occupancy is the profiler's, weighted by duration. Tensor Core share is, where the
// GPU's counters were sampled in the steps, the cycles in which Tensor pipes were active over those
// in which an SM had work (device_counters.hpp). Else it is time in kernels that use them over the
// time of all compute kernels, of kernels that counters know by those, of others by their names: an
// estimate. `tensor_core_source` says which.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct Utilisation {
  std::optional<double> gpu_utilisation = {};
  std::optional<double> sm_efficiency = {};
  std::optional<double> occupancy = {};
  std::optional<double> tensor_core_share = {};
  // "counters" and what of, "kernel names", or how much of the time is by counters.
  std::string tensor_core_source = {};
};

// Whether a kernel keeps the Tensor pipes busy, by its counters; nothing where there are none of
// it.
using TensorCoreCounters = std::function<std::optional<bool>(std::string_view kernel)>;

Utilisation find_utilisation(const std::vector<RankView>& ranks,
                             const TensorCoreCounters& counters = {});

// By name: Volta to Hopper and later (HMMA, IMMA, WGMMA kernels of
// cuBLAS, CUTLASS and flash attention), and AMD's matrix cores.
bool uses_tensor_cores(std::string_view kernel);

}  // namespace sidestream::analysis
