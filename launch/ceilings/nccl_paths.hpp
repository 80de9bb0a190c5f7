// Which way NCCL moves a collective faster between the GPUs of this machine, as `bench` measured
// it, and what --nccl-ctas auto makes of that.
#pragma once

#include <map>
#include <span>
#include <string>

#include "comm/nccl/tuning.hpp"
#include "launch/ceilings/collective_rate.hpp"

namespace sidestream::launch {

// Bus bandwidths of one collective of the largest size that was measured.
struct PathRates {
  double kernels_bytes_per_s = 0;       // of --nccl-ctas auto
  double copy_engines_bytes_per_s = 0;  // of --nccl-ctas none, with windows
};

// By name of the collective and number of ranks.
using NcclPaths = std::map<std::string, std::map<int, PathRates>>;

// Without compute units where windows are on, nothing else was asked for, and that was faster for
// each of these collectives between so many ranks; else what was asked for. A GPU's kernels beside
// the collective then gain what it no longer takes, which the comparison does not count.
comm::nccl::Tuning tuning_by_measurement(const comm::nccl::Tuning& asked, const NcclPaths& measured,
                                         std::span<const Collective> collectives, int ranks);

}  // namespace sidestream::launch
