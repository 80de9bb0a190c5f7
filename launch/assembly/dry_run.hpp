// --dry-run: what a run would do, without MPI and without training.
#pragma once

#include <cstddef>
#include <string>

#include "launch/options/train_options.hpp"

namespace sidestream::launch {

// Opens and checks the data, lays out the model, plans buckets, memory and steps for `ranks` ranks.
// Throws what the run would throw: ConfigError, DataError.
std::string dry_run_text(TrainOptions options, int ranks);

// Weights, master weights, gradients and moments of one rank on a GPU. `options` must have its
// vocabulary set.
std::size_t planned_device_bytes(const TrainOptions& options, int ranks);

}  // namespace sidestream::launch
