// --dry-run: what a run would do, without MPI and without training.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "comm/mpi_environment.hpp"
#include "launch/options/train_options.hpp"

namespace sidestream::launch {

// Where the ranks are going to run, as far as that is known.
struct DryRunPlace {
  comm::LauncherEnvironment launcher = {};  // size 1 without one
  int ranks_on_host = 1;
  // Of this host, for all of them; empty: not known, or they run on GPUs.
  std::optional<std::int64_t> usable_bytes = {};
  std::int64_t rank_bytes = 0;  // what a rank takes before there is a model
  // Of this host, also where ranks run on GPUs; empty: not known.
  std::optional<std::int64_t> host_bytes = {};
};

// Opens and checks the data, lays out the model, plans buckets, memory and steps. Where the plan
// does not fit into the memory, the text names the first of memory_advice()'s flags that suffices.
// Throws what the run would throw: ConfigError, DataError.
std::string dry_run_text(TrainOptions options, const DryRunPlace& place);

// Of one rank on a GPU, from a dry plan. `options` must have its vocabulary set.
struct DevicePlan {
  std::size_t training_bytes = 0;   // weights, master weights, gradients and moments
  std::size_t start_bytes = 0;      // before there are activations (MemoryPlan::start_bytes)
  std::size_t offloaded_bytes = 0;  // of those, what --offload optimizer would take away
  std::size_t pinned_bytes = 0;     // of the host, for --offload
  std::size_t copied_bytes = 0;     // of all ranks of a host, while a checkpoint is written

  // No activations.
  std::size_t state_bytes() const { return std::max(training_bytes, start_bytes); }
};
DevicePlan plan_device(const TrainOptions& options, int ranks, int ranks_on_host);

}  // namespace sidestream::launch
