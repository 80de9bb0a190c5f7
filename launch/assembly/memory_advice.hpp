// Whether a planned run fits into the memory of its host or its GPU, and the first flags that would
// make it fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launch/options/train_options.hpp"
#include "model/activation_memory.hpp"

namespace sidestream::launch {

enum class MemoryOf { kHost, kGpu };

struct HostMemory {
  int ranks = 1;                                  // on the host, or the GPU
  std::optional<std::int64_t> usable_bytes = {};  // for all of them; empty: not known
  std::int64_t fixed_bytes = 0;                   // of a rank, whatever the flags below
  std::int64_t start_bytes = 0;                   // of a rank, before there are activations
  std::int64_t copied_bytes = 0;                  // of all of them, while a checkpoint is written
  MemoryOf memory = MemoryOf::kHost;
  std::int64_t offloaded_bytes = 0;  // of fixed_bytes: what --offload optimizer would take away
};

// Of one micro-step of a rank. `options` must have its vocabulary set.
model::ActivationMemory activations_of(const TrainOptions& options);

// Empty where it fits or nothing is known, else sentences: what is needed, what is there, and the
// first of these that fits: --loss-chunks auto, then --recompute level by level with it, then on a
// GPU --offload residuals, and optimizer with it; or that none does.
std::string memory_advice(const TrainOptions& options, const HostMemory& host);

}  // namespace sidestream::launch
