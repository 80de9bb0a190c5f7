// The checkpoint that a user means by a path.
#pragma once

#include <filesystem>

#include "core/checkpoint/checkpoint_store.hpp"

namespace sidestream::checkpoint {

struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::vector<SkippedCheckpoint> skipped;  // newer ones that did not verify: to be reported
};

// `path` is a checkpoint's folder, a run directory (its newest valid checkpoint), or a folder of
// checkpoints. Throws CheckpointError when nothing valid is there; the message lists what was
// skipped and why.
FoundCheckpoint find_checkpoint(const std::filesystem::path& path);

}  // namespace sidestream::checkpoint
