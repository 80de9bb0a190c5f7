// The number that NVML gives to a GPU of this process.
#pragma once

#include <optional>

namespace sidestream::launch {

// NVML counts all GPUs of the machine, CUDA those that CUDA_VISIBLE_DEVICES leaves, in its order.
// -1: not known, for example where the variable names identifiers; then GPUs are not sampled.
int nvml_index(std::optional<int> cuda_index);

}  // namespace sidestream::launch
