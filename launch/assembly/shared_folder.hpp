// Whether all ranks mean the same folder by --run-dir: each writes its part of every checkpoint
// there.
#pragma once

#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch {

// After rank 0 has claimed the run directory. Every rank looks for a file that rank 0 has just
// written beside the checkpoints, and the first rank of each node writes one of its own; nothing is
// left. Collective. Throws AgreedError with the exit code of the configuration.
void require_shared_run_directory(Session& session, const TrainOptions& options);

}  // namespace sidestream::launch
