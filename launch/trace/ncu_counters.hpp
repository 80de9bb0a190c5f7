// Counters of Nsight Compute for a run that was read.
#pragma once

#include <filesystem>
#include <vector>

#include "profiling/advice/ncu_csv.hpp"
#include "profiling/analysis/analysis.hpp"

namespace sidestream::launch {

// Of all files together; a kernel's counters come from the last file that has it. Throws
// core::DataError for a file that is no CSV of ncu, and when none of its kernels is in the traces.
advice::NcuByKernel read_counters(const std::vector<std::filesystem::path>& files,
                                  const analysis::Analysis& analysis);

}  // namespace sidestream::launch
