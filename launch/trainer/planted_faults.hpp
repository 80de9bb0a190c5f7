// Planted faults that touch tensors: the same for steps on the processor and on a GPU.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/faults/fault_injector.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

// Before a batch is taken: what ends the process, or a bit of the first weight turned over (what a
// faulty memory would do to one replica), once all weights of the last update are there.
void plant_before_batch(faults::FaultInjector& faults, std::int64_t step,
                        const torch::nn::Module& model, const parallel::DataParallel& replicas);

// The loss as it is, or spoiled; its gradient is spoiled with it.
torch::Tensor plant_in_loss(faults::FaultInjector& faults, std::int64_t step, torch::Tensor loss);

}  // namespace sidestream::launch
