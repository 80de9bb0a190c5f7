// How fast NVLinks join a GPU to others, by the driver.
#pragma once

#include <map>
#include <string>

#include "profiling/record/nvml_library.hpp"

namespace sidestream::record {

// Bytes a second are those of one direction, of the links that are up.
struct NvLinks {
  std::string bus_id = {};                // of this GPU: "00000000:3B:00.0"; empty: not known
  double switch_bytes_per_s = 0;          // to an NVSwitch, which leads to all GPUs of the host
  std::map<std::string, double> to = {};  // to other GPUs, by their bus_id
};

// Without links, or without NVML, there are none. library: for tests.
NvLinks read_nvlinks(const NvmlGpu& gpu, const std::string& library = "libnvidia-ml.so.1");

}  // namespace sidestream::record
