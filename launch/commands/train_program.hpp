// The frame of a training process: what comes before MPI starts, and the communicator that the
// options ask for.
#pragma once

#include "launch/commands/commands.hpp"
#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch {

// Returns the exit code of the process, as run_program does.
int run_train_program(const CommandCall& call, const TrainOptions& options,
                      const ProgramBody& body);

// As it was called, for the record of a run.
std::string command_line_of(const CommandCall& call);

}  // namespace sidestream::launch
