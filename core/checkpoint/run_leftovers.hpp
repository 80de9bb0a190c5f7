// Files that a killed run was in the middle of writing. They have names of their own until they are
// complete, so that nobody takes them for more; here they go.
#pragma once

#include <cstddef>

#include "core/checkpoint/run_directory.hpp"

namespace sidestream::checkpoint {

// By who holds the run directory, also before it reads a checkpoint: halves of those go, and what
// may still get its name back is left to CheckpointStore. What cannot be removed stays: it is only
// in the way of tidiness. Returns how many files and folders have gone.
std::size_t remove_run_leftovers(const RunPaths& paths) noexcept;

}  // namespace sidestream::checkpoint
