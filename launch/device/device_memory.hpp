// How much of a GPU a rank has taken: LibTorch counts its own tensors only.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sidestream::launch {

// What LibTorch's pool of device memory says of itself, in bytes.
struct PoolUse {
  std::int64_t peak_allocated_bytes = 0;  // of tensors
  std::int64_t reserved_bytes = 0;        // what the pool holds now
};

// Tensors at their peak, and all that lies outside of the pool now: gradients, buffers of NCCL,
// workspaces and code of libraries. taken_bytes: what has gone from the device since the rank took
// it.
inline std::int64_t device_memory_peak(const PoolUse& pool, std::int64_t taken_bytes) {
  return pool.peak_allocated_bytes + std::max<std::int64_t>(0, taken_bytes - pool.reserved_bytes);
}

}  // namespace sidestream::launch
