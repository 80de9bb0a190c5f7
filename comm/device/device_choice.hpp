// Which GPU a rank takes, and what all ranks make of it together. The first half runs before MPI
// starts, so that MPI and everything after it sees the device that the rank will use.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/cuda/driver.hpp"
#include "comm/topology.hpp"

namespace sidestream::comm {

enum class DeviceWish { kAuto, kCpu, kCuda };
enum class GpuSharing { kRefused, kAllowed };

// What one rank has found.
struct DeviceFinding {
  // Why there is no GPU to use; empty: there is one, current in this thread.
  std::string problem = {};
  bool expected = false;       // there is none, though the machine has a driver for them
  bool named_in_vain = false;  // CUDA_VISIBLE_DEVICES names none that is there
  int index = 0;
  int count = 0;  // of GPUs that the rank sees
  std::string name = {};
  std::string uuid = {};
  std::string pci_bus = {};  // as NVML is asked for it
  std::string version = {};  // of driver and runtime
  cuda::DeviceMemory memory = {};

  bool usable() const noexcept { return problem.empty(); }

  // For the exchange among ranks. Throws core::Error for a text that is none.
  std::string to_text() const;
  static DeviceFinding from_text(const std::string& text);
};

// The GPU with the number of the rank on its node, counted modulo the GPUs that the rank sees (a
// batch system may show each rank just its own). Makes it the thread's device. Never throws.
DeviceFinding find_device(cuda::Driver& driver, int local_rank);

// What follows from the findings of all ranks, the same on every rank.
struct DeviceDecision {
  bool on_gpu = false;
  std::string refusal = {};  // not empty: the job cannot run like this
  std::vector<std::string> warnings = {};
};
DeviceDecision decide_device(DeviceWish wish, std::span<const DeviceFinding> by_rank,
                             const Topology& topology, GpuSharing sharing);

// CUDA's own context, cuBLAS and NCCL take this beside what we ask for.
inline constexpr std::size_t kLibraryBytes = std::size_t{1} << 30;

// A sentence with need and have when `needed_bytes` do not fit into what is free; else nothing.
std::optional<std::string> memory_shortage(const cuda::DeviceMemory& memory,
                                           std::size_t needed_bytes);

}  // namespace sidestream::comm
