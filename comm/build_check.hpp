// One job, one build: other builds may lay out the shared board, buckets and messages differently.
#pragma once

#include <span>
#include <string>

#include "comm/mpi_handles.hpp"

namespace sidestream::comm {

// Nothing where all build ids, in rank order, are the same, or a rank knows none; else one message,
// the same on every rank, that names each build and the ranks that run it.
std::string build_difference(std::span<const std::string> build_ids,
                             std::span<const std::string> hosts);

// Every rank of `job` calls it, before anything else is agreed on. Throws ConfigError, on all ranks
// alike.
void require_one_build(MPI_Comm job);

}  // namespace sidestream::comm
