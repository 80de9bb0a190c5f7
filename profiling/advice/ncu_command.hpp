// The commands that read the counters of the longest kernels with Nsight Compute.
#pragma once

#include <string>
#include <vector>

namespace sidestream::advice {

struct MeasuredKernel {
  std::string name;     // as in the trace
  double per_step = 0;  // launches of one rank
};

// One command a kernel, for other kernels of the same run cost no replay; none for collectives,
// whose replay would wait for the other ranks, for copies and for operators. A pattern names the
// kernel; where it fits others of `launched`, which are all kernels of the run, their launches are
// counted in what is skipped and measured. `program` is the command line of the run that was
// recorded: its run directory is used, so each command names a fresh one, and leaves out the
// profiler, which shares the hardware with ncu.
std::vector<std::string> ncu_commands(const std::vector<MeasuredKernel>& kernels,
                                      const std::vector<MeasuredKernel>& launched,
                                      const std::vector<std::string>& program);

}  // namespace sidestream::advice
