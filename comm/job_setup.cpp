#include "comm/job_setup.hpp"

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "comm/machine.hpp"
#include "comm/mpi_check.hpp"
#include "core/base/error.hpp"
#include "core/base/processors.hpp"

namespace sidestream::comm {

std::vector<std::string> host_names(MPI_Comm job) {
  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  Name mine{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(mine.data(), &length), "MPI_Get_processor_name");
  std::vector<Name> all(static_cast<std::size_t>(size_of(job)));
  check_mpi(
      MPI_Allgather(mine.data(), sizeof(Name), MPI_CHAR, all.data(), sizeof(Name), MPI_CHAR, job),
      "MPI_Allgather of host names");
  std::vector<std::string> names;
  for (const Name& name : all) names.emplace_back(name.data());
  return names;
}

UniqueMpiComm join_job() {
  MPI_Comm raw = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &raw, &request), "MPI_Comm_idup");
  int joined = 0;
  while (joined == 0) {
    check_mpi(MPI_Test(&request, &joined, MPI_STATUS_IGNORE), "MPI_Comm_idup");
    if (joined == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  UniqueMpiComm job(raw);
  check_mpi(MPI_Comm_set_errhandler(raw, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return job;
}

NodeMeeting meeting_over(MPI_Comm comm) {
  const auto exchange = [comm](std::string_view mine) {
    using Words = std::array<char, 101>;
    Words words{};
    mine.copy(words.data(), words.size() - 1);
    std::vector<Words> all(static_cast<std::size_t>(size_of(comm)));
    check_mpi(MPI_Allgather(words.data(), sizeof(Words), MPI_CHAR, all.data(), sizeof(Words),
                            MPI_CHAR, comm),
              "MPI_Allgather in setup");
    std::vector<std::string> texts;
    for (const Words& theirs : all) texts.emplace_back(theirs.data());
    return texts;
  };
  return {.rank = rank_of(comm), .size = size_of(comm), .exchange = exchange};
}

Topology find_topology(MPI_Comm job, MPI_Comm node) {
  Topology topology{.rank = rank_of(job),
                    .size = size_of(job),
                    .local_rank = rank_of(node),
                    .local_size = size_of(node)};
  int leader = topology.rank;
  check_mpi(MPI_Bcast(&leader, 1, MPI_INT, 0, node), "MPI_Bcast of the node's first rank");
  std::vector<int> leaders(static_cast<std::size_t>(topology.size));
  check_mpi(MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, job),
            "MPI_Allgather of nodes");
  topology.node_count = 0;
  for (int rank = 0; rank < topology.size; ++rank) {
    if (rank == leader) topology.node = topology.node_count;
    if (leaders[static_cast<std::size_t>(rank)] == rank) ++topology.node_count;
  }
  topology.hosts = host_names(job);
  return topology;
}

NodeLayout find_layout(MPI_Comm job, const Topology& topology) {
  std::vector<int> nodes(static_cast<std::size_t>(topology.size));
  check_mpi(MPI_Allgather(&topology.node, 1, MPI_INT, nodes.data(), 1, MPI_INT, job),
            "MPI_Allgather of nodes");
  NodeLayout layout(static_cast<std::size_t>(topology.node_count));
  for (int rank = 0; rank < topology.size; ++rank) {
    layout[static_cast<std::size_t>(nodes[static_cast<std::size_t>(rank)])].push_back(rank);
  }
  return layout;
}

Binding Binding::of_this_process(int ranks_on_node) {
  Binding binding{.ranks_on_node = ranks_on_node};
  binding.bound_cpus = static_cast<int>(core::allowed_processors().size());
  if (binding.bound_cpus == 0) return binding;
  binding.available_cpus = Machine::read().processors;
  return binding;
}

std::optional<std::string> binding_warning(const Binding& binding) {
  const int share = binding.share();
  if (binding.bound_cpus == 0 || share == 0 || binding.bound_cpus >= share) return std::nullopt;
  return "each rank may run on " + std::to_string(binding.bound_cpus) + " of the " +
         std::to_string(binding.available_cpus) + " processors of its node, though its share is " +
         std::to_string(share) + ": start with `mpirun --bind-to none` (launch/run does)";
}

}  // namespace sidestream::comm
