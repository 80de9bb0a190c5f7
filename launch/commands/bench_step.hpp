// `sidestream bench step`: a short training, and what a step of it takes.
#pragma once

#include "launch/commands/commands.hpp"
#include "launch/options/bench_step_options.hpp"

namespace sidestream::launch {

// Alone or under mpirun. Returns the exit code of the process; that of the training where it does
// not come to its end.
int run_bench_step(const CommandCall& call, const StepBenchOptions& options);

}  // namespace sidestream::launch
