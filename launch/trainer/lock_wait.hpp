// A restart that finds the run directory's lock taken: where the host of rank 0 has died, a network
// file system keeps its lock until the host's lease ends (90 s with NFSv4), and a spare starts
// sooner.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/checkpoint/run_directory.hpp"

namespace sidestream::launch {

// Whether this process belongs to a start that follows a failed one: a supervisor's second or
// later, or a job that Slurm has put into the queue again.
bool is_restart();

// Comes back when nobody holds the lock, or after `limit`: who takes the directory then says what
// is wrong with it. `tell` hears once, at the first look, who holds it.
void wait_for_lock(const checkpoint::RunPaths& paths, std::chrono::milliseconds limit,
                   const std::function<void(const std::string&)>& tell);

}  // namespace sidestream::launch
