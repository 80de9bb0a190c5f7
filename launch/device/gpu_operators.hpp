// What only GPUs have of operators: packed attention, and products of the fastest algorithm. On the
// device that the calling thread has chosen.
#pragma once

#include <torch/types.h>

#include "comm/communicator.hpp"
#include "launch/options/train_options.hpp"
#include "model/device/packed_attention.hpp"

namespace sidestream::launch {

// Throws ConfigError where an option says on and this build or this GPU has it not.
void require_gpu_operators(const TrainOptions& options);

// Whether the GPU has it. A cuDNN that cannot be used at all is no reason to end a run that has not
// asked for it: LibTorch has attention without it. Throws c10::OutOfMemoryError.
bool has_packed_attention(const model::device::PackedAttention& attention,
                          const TrainOptions& options);

// Writes into options.model.config what Toggle::kAuto comes to on this rank: on where there is no
// obstacle. on_gpu: whether the model goes to one.
void settle_gpu_operators(TrainOptions& options, bool on_gpu);

// What is automatic is on where every rank has it. Every rank calls it after
// settle_gpu_operators(). Throws CollectiveError, PeerError.
void agree_on_gpu_operators(TrainOptions& options, comm::Communicator& communicator);

torch::ScalarType activation_type(Precision precision);

}  // namespace sidestream::launch
