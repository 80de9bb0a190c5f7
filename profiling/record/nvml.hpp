// The GPU of this process as NVIDIA's management library sees it: found when the program runs, so
// that neither a toolkit nor a driver is needed. Where it is missing there are no samples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "profiling/record/nvml_library.hpp"
#include "profiling/record/system_sample.hpp"

namespace sidestream::record {

class Nvml {
 public:
  // library: for tests.
  explicit Nvml(const NvmlGpu& gpu, const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool found() const noexcept { return library_ != nullptr; }

  // Use, memory, power, temperature, clocks, and why clocks are held down; what a device does not
  // tell is left out.
  std::vector<SystemSample> sample();

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace sidestream::record
