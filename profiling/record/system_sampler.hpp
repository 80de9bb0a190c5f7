// Samples of the system, as rates since the sample before: processor time and waiting of every
// thread, memory, storage, network, and the GPUs that NVML knows.
#pragma once

#include <vector>

#include "profiling/record/nvml.hpp"
#include "profiling/record/proc_files.hpp"
#include "profiling/record/system_sample.hpp"

namespace sidestream::record {

// Of the time between two readings. Counters without a change in it are written too: a line at 0 is
// an answer.
std::vector<SystemSample> rates_between(const SystemTotals& before, const SystemTotals& after);

class SystemSampler {
 public:
  // gpu: the device of this process.
  explicit SystemSampler(const NvmlGpu& gpu);

  // By one thread. Files that cannot be read count as 0; never throws for them.
  std::vector<SystemSample> sample();

 private:
  SystemTotals last_;
  Nvml nvml_;
};

}  // namespace sidestream::record
