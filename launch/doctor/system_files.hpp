// What the kernel says about this machine and this process, without LibTorch and MPI.
#pragma once

#include <filesystem>
#include <string>

#include "launch/doctor/rank_facts.hpp"

namespace sidestream::launch::doctor {

struct SystemFolders {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::filesystem::path shared_memory = "/dev/shm";
};

// What is missing there is left as it is in facts that nobody has filled in.
MemoryFacts read_memory(const SystemFolders& folders = {});
LimitFacts read_limits(const SystemFolders& folders = {});
NetworkFacts read_network(const SystemFolders& folders = {});
std::string read_clock_source(const SystemFolders& folders = {});
// Quota, load and governor; the rest is hwloc's and LibTorch's.
ProcessorFacts read_processor(const SystemFolders& folders = {});
// Devices on the bus and the driver; the rest is CUDA's and NVML's.
GpuFacts read_gpus(const SystemFolders& folders = {});

// Whether a program of this name is in one of the folders of PATH.
bool is_in_path(const std::string& program);

}  // namespace sidestream::launch::doctor
