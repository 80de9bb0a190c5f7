// The flat storage with which data-parallel training begins, and the plan of buckets that it has.
#pragma once

#include <cstddef>
#include <span>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "comm/communicator.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/bucket_size.hpp"
#include "parallel/config.hpp"
#include "parallel/device_tools.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

// Of parameters of these sizes, in this order, as the configuration limits buckets.
BucketPlan plan_of(const DataParallelConfig& config, std::span<const std::size_t> elements,
                   std::span<const std::size_t> order, int ranks, Slicing slicing);

// Collective: the parameters that all ranks agree on. Sharded, they have rank 0's values already,
// which come in the memory of the module: each rank then makes its slices of the master weights out
// of them, and nothing that is larger. Throws AgreedError.
ParameterSpace agreed_space(comm::Communicator& communicator, const torch::nn::Module& module,
                            const DataParallelConfig& config, const DeviceTools& tools);

}  // namespace sidestream::parallel
