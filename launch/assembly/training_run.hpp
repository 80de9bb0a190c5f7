// A whole training run on one rank: opens what the options name, trains, reports, returns the exit
// code.
#pragma once

#include <string>

#include "core/base/exit_code.hpp"
#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch {

// Collective. Throws AgreedError for what all ranks found out before the first step, and what the
// trainer throws.
core::ExitCode run_training(Session& session, TrainOptions options,
                            const std::string& command_line);

}  // namespace sidestream::launch
