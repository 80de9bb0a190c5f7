// Tables that kernels read, on the device.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace sidestream::parallel {

// A copy of plain data on the device, as bytes. Waits for the copy: it is made rarely.
template <typename T>
torch::Tensor bytes_on_device(const std::vector<T>& data, const torch::Device& device) {
  const torch::Tensor bytes =
      torch::from_blob(const_cast<T*>(data.data()),
                       {static_cast<std::int64_t>(data.size() * sizeof(T))}, torch::kUInt8);
  return bytes.clone().to(device);
}

}  // namespace sidestream::parallel
