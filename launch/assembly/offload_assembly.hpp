// What --offload needs of a host, and the memory in which blocks' inputs wait there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "launch/device/device_session.hpp"
#include "launch/options/train_options.hpp"
#include "model/language_model.hpp"

namespace sidestream::launch {

// Pinned memory of one host. Pages that the CUDA driver pins count as memory of the process, in a
// container's limit too; ulimit -l is no bound for them.
struct PinnedNeed {
  int ranks = 1;                                  // on the host
  std::size_t rank_bytes = 0;                     // pinned, of each
  std::int64_t other_bytes = 0;                   // of all of them: programs, a checkpoint's copy
  std::optional<std::int64_t> usable_bytes = {};  // of the host; empty: not known

  std::int64_t pinned_bytes() const { return static_cast<std::int64_t>(rank_bytes) * ranks; }
};

// What there is not known of suffices.
bool fits_host(const PinnedNeed& need);

// Throws ConfigError with need and have when they do not fit.
void require_host_memory(const TrainOptions& options, const PinnedNeed& need);

// Nothing to do where no residuals are offloaded. `model` must have the type of its training.
// Throws MemoryError.
void offload_residuals(model::LanguageModel& model, const TrainOptions& options,
                       const DeviceSession& device);

}  // namespace sidestream::launch
