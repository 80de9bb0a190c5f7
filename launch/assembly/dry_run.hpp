// --dry-run: what a run would do, without MPI and without training.
#pragma once

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
  bool has_gpu = false;  // this machine
};

// Opens and checks the data, lays out the model, plans buckets, memory and steps. Where the plan
// does not fit into the memory, the text names the first of memory_advice()'s flags that suffices.
// Throws what the run would throw: ConfigError, DataError.
std::string dry_run_text(TrainOptions options, const DryRunPlace& place);

}  // namespace sidestream::launch
