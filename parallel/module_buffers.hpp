// Tensors of a module that no optimizer updates and forwards may: BatchNorm's running statistics.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "comm/communicator.hpp"

namespace sidestream::parallel {

// Collective: the first rank's buffers to all ranks, between steps. DataParallel does so once, at
// its start; a module whose forward writes buffers leaves other ones on every rank, for each has
// seen its own samples only. Call it before an evaluation, and before what one rank saves
// (PyTorch's DDP does before every forward; statistics of the batch, which training uses, do not
// depend on it). All ranks need modules of the same buffers. Throws ConfigError for a
// buffer that is not where the communicator works, CollectiveError, PeerError.
void broadcast_buffers(const torch::nn::Module& module, comm::Communicator& communicator);

}  // namespace sidestream::parallel
