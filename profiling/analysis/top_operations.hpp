// What took the most time: kernels and copies of device ranks, operators (their own time, without
// what they call) of host ranks. Sums over all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct Operation {
  std::string name;
  trace::Kind kind = trace::Kind::kKernel;
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  double share = 0;         // of the time of all operations
  std::int64_t bytes = -1;  // copied; below 0: not known
};

// By total time, the longest first.
std::vector<Operation> operations(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
