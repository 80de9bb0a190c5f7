// What forward and backward of one micro-step need beside weights and their gradients, from shapes
// alone. No LibTorch in this header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/config.hpp"

namespace sidestream::model {

// Of one micro-step on one rank.
struct StepShape {
  std::int64_t batch = 0;
  std::int64_t sequence_length = 0;
  std::int64_t element_bytes = 4;  // of the parameters' dtype
  bool on_cpu = true;              // where fused operators run
};

// Bytes. An estimate of what tensors take: within a fifth of what LibTorch's allocator hands out at
// the peak of a step on the processor (a test measures it), more with dropout, where attention's
// probabilities are kept. What operators allocate by themselves is not in it.
struct ActivationMemory {
  std::size_t kept = 0;  // from forward to backward, by --recompute
  std::size_t host = 0;  // the same where --offload has moved it: pinned memory of a GPU's host
  std::size_t loss = 0;  // logits and what becomes of them, by --loss-chunks, and their gradients
  std::size_t working = 0;  // gradients on their way through one block, and what is computed again

  // The peak comes at the end of the loss or in the backward of the last block.
  std::size_t peak() const { return kept + (loss > working ? loss : working); }
};

ActivationMemory activation_memory(const ModelConfig& config, const StepShape& shape);

}  // namespace sidestream::model
