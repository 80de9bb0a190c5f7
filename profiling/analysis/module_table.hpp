// Steps, phases, layers and modules: time of the ranges on host threads and of the device work
// inside them, and of the backward of what ran inside them.
//
// A module is what operators say that they belong to; its calls are the outermost operators of it
// in forward. Of ranges or operators of one name inside one another only the outermost counts.
#pragma once

#include <string>
#include <vector>

#include "profiling/analysis/operator_table.hpp"

namespace sidestream::analysis {

struct ModuleRow {
  std::string kind;  // "step", "phase", "layer" (a range of any other name), "module" (PyTorch's)
  std::string name;
  CallSums sums;
  // Backward runs on another thread, long after the range: its operators carry the sequence number
  // of the forward operator that they belong to.
  std::int64_t backward_host_ns = 0;
  std::int64_t backward_device_ns = 0;
};

// Longest first: by time on the device, then on the host. Sums over all ranks.
std::vector<ModuleRow> module_table(const std::vector<RankView>& ranks,
                                    const std::vector<CallTree>& trees);

}  // namespace sidestream::analysis
