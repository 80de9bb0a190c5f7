// --dry-run: what a run would do, without MPI and without training.
#pragma once

#include <cstddef>
#include <string>

#include "comm/mpi_environment.hpp"
#include "launch/options/train_options.hpp"

namespace sidestream::launch {

// Opens and checks the data, lays out the model, plans buckets, memory and steps for the ranks of a
// launcher, or one.
// Throws what the run would throw: ConfigError, DataError.
std::string dry_run_text(TrainOptions options, const comm::LauncherEnvironment& launcher);

// Weights, master weights, gradients and moments of one rank on a GPU. `options` must have its
// vocabulary set.
std::size_t planned_device_bytes(const TrainOptions& options, int ranks);

}  // namespace sidestream::launch
