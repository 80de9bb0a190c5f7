// `sidestream bench allreduce` and its like.
#pragma once

#include "comm/factory.hpp"
#include "core/base/exit_code.hpp"
#include "launch/ceilings/collective_rate.hpp"
#include "launch/options/bench_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch {

// Collective: measures size by size and prints a table on the first rank; over NCCL with windows
// once more without compute units, and keeps which way was faster. config: of the session's
// communicator.
core::ExitCode bench_collective(Session& session, const comm::CommunicatorConfig& config,
                                const BenchOptions& options, Collective collective);

}  // namespace sidestream::launch
