// Who of a job gets a life line: all ranks of the job set them up together.
#pragma once

#include <memory>

#include "comm/life_lines.hpp"
#include "comm/mpi_handles.hpp"
#include "comm/topology.hpp"

namespace sidestream::comm {

// Ranks that see each other's processes on the board of their node.
enum class Boards { kNone, kOnEveryNode };

// Collective. Lines between the job's first rank and one of every other node, or every other rank
// where there are no boards, or they do not show everybody's process (a container for each rank);
// the rest learn of a death from these. Null where all share a board.
std::unique_ptr<LifeLines> connect_life_lines(MPI_Comm job, const Topology& topology,
                                              Boards boards);

}  // namespace sidestream::comm
