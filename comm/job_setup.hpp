// The first steps of a job: a communicator of our own, and who sits where. All ranks call them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/mpi_handles.hpp"
#include "comm/node_collectives.hpp"
#include "comm/node_meeting.hpp"
#include "comm/topology.hpp"

namespace sidestream::comm {

// A duplicate of MPI_COMM_WORLD. Sleeps while it waits for the others; SetupWatch has the deadline.
UniqueMpiComm join_job();

// Of all ranks, in their order.
std::vector<std::string> host_names(MPI_Comm job);

// Meets over the ranks of `comm`, which outlives it; words of at most 100 bytes.
NodeMeeting meeting_over(MPI_Comm comm);

Topology find_topology(MPI_Comm job, MPI_Comm node);

// Ranks by node, from the node of every rank.
NodeLayout find_layout(MPI_Comm job, const Topology& topology);

// A warning when the ranks of a node are bound to fewer processors than it has for them, as bare
// mpirun does.
struct Binding {
  int bound_cpus = 0;      // that this rank may run on
  int available_cpus = 0;  // that the job may use on this node
  int ranks_on_node = 1;

  static Binding of_this_process(int ranks_on_node);

  // Processors for each rank; 0 where the ranks outnumber them.
  int share() const noexcept { return available_cpus / ranks_on_node; }
};
std::optional<std::string> binding_warning(const Binding& binding);

}  // namespace sidestream::comm
