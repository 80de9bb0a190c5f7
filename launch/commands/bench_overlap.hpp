// `sidestream bench overlap`.
#pragma once

#include "core/base/exit_code.hpp"
#include "launch/options/bench_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch {

// Collective: an all-reduce beside matrix products, size by size, and a table on the first rank.
core::ExitCode bench_overlap(Session& session, const BenchOptions& options);

}  // namespace sidestream::launch
