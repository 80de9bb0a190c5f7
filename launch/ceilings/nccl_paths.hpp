// Which way NCCL gathers faster between the GPUs of this machine, as `bench allgather` measured it,
// and what --nccl-ctas auto makes of that.
#pragma once

#include <map>

#include "comm/nccl/tuning.hpp"

namespace sidestream::launch {

// Bus bandwidths of the largest size that was measured.
struct PathRates {
  double kernels_bytes_per_s = 0;       // of --nccl-ctas auto
  double copy_engines_bytes_per_s = 0;  // of --nccl-ctas none, with windows
};

// Of an all-gather, by number of ranks. NCCL's copy engines do nothing else that training asks for:
// all-reduce and reduce-scatter run the same kernels either way (NCCL 2.28, release notes).
using GatherPaths = std::map<int, PathRates>;

// Ranks that gather weights.
struct GatheringRanks {
  int count = 1;
  bool captures = false;  // steps into a CUDA graph, gathers with them
};

// Without compute units where windows are on, nothing else was asked for, and that was as fast
// between so many ranks; else what was asked for. There is no margin: a GPU's kernels beside the
// gather gain what it no longer takes, which the comparison does not count.
comm::nccl::Tuning tuning_by_measurement(const comm::nccl::Tuning& asked,
                                         const GatherPaths& measured, const GatheringRanks& ranks);

}  // namespace sidestream::launch
