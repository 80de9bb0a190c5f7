#include <fmt/format.h>

#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {

std::optional<Finding> check_mpi(const JobFacts& job) {
  const std::string& first = job.ranks.front().mpi.version;
  for (std::size_t rank = 1; rank < job.ranks.size(); ++rank) {
    const std::string& other = job.ranks[rank].mpi.version;
    if (other == first) continue;
    return Finding{.name = "mpi",
                   .level = Level::kError,
                   .found = fmt::format("{} on {}, {} on {}", first, job.topology.place_of(0),
                                        other, job.topology.place_of(rank)),
                   .expected = "the same MPI on all ranks",
                   .remedy = "install the same version on all hosts"};
  }
  return worst_over(job, Subject::kRank, [](const RankFacts& rank) -> Finding {
    const comm::MpiLibrary& mpi = rank.mpi;
    Finding finding{.name = "mpi", .found = fmt::format("{}, MPI {}", mpi.version, mpi.standard)};
    if (mpi.standard == mpi.built_standard) return finding;
    finding.level = Level::kWarning;
    finding.expected = fmt::format("MPI {}, which this build was made with", mpi.built_standard);
    finding.remedy = "take the other MPI out of LD_LIBRARY_PATH, or build again with launch/setup";
    return finding;
  });
}

// Never in the way: gradients of GPUs go over NCCL, and --backend mpi stages them in host memory.
std::optional<Finding> check_mpi_cuda(const JobFacts& job) {
  const std::string& aware = job.ranks.front().mpi.cuda_aware;
  return Finding{.name = "mpi-cuda",
                 .found = fmt::format("MPI takes device pointers: {}{}", aware,
                                      aware == "yes" ? "" : "; none are given to it")};
}

// Of this host only: the launcher starts the others.
std::optional<Finding> check_launcher(const JobFacts& job) {
  if (job.ranks.size() > 1) return std::nullopt;
  if (job.ranks.front().mpirun) return Finding{.name = "launcher", .found = "mpirun is in PATH"};
  return Finding{.name = "launcher",
                 .level = Level::kWarning,
                 .found = "mpirun is not in PATH: only one process can be started",
                 .expected = "the mpirun of the MPI that this build was made with",
                 .remedy = "launch/setup installs Open MPI; or load your cluster's module for it"};
}

}  // namespace sidestream::launch::doctor
