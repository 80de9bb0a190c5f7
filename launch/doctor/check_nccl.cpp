#include <fmt/format.h>

#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {
namespace {

bool trains_on_gpus(const JobFacts& job) {
  return job.wish != comm::DeviceWish::kCpu && job.ranks.front().gpu.device.usable();
}

std::optional<Finding> differing_versions(const JobFacts& job) {
  const NcclFacts& first = job.ranks.front().nccl;
  for (std::size_t rank = 1; rank < job.ranks.size(); ++rank) {
    const NcclFacts& other = job.ranks[rank].nccl;
    if (other.loaded == first.loaded) continue;
    const auto name = [](const std::string& version) {
      return version.empty() ? std::string("none") : version;
    };
    return Finding{.name = "nccl",
                   .level = trains_on_gpus(job) ? Level::kError : Level::kWarning,
                   .found = fmt::format("NCCL {} on {}, {} on {}", name(first.loaded),
                                        job.topology.place_of(0), name(other.loaded),
                                        job.topology.place_of(rank)),
                   .expected = "the same NCCL on all ranks: others do not talk to each other",
                   .remedy =
                       "take other copies out of LD_LIBRARY_PATH and LD_PRELOAD on that "
                       "host, or run launch/setup there"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> check_nccl(const JobFacts& job) {
  if (auto differing = differing_versions(job)) return differing;
  const bool needed = trains_on_gpus(job) && job.ranks.size() > 1;
  return worst_over(job, Subject::kRank, [needed](const RankFacts& rank) -> Finding {
    const NcclFacts& nccl = rank.nccl;
    if (nccl.problem.empty())
      return {.name = "nccl",
              .found = fmt::format("NCCL {}, built against and loaded", nccl.loaded)};
    return {.name = "nccl",
            .level = needed ? Level::kError : Level::kNote,
            .found = nccl.problem,
            .expected = "an NCCL that fits this build, for several GPUs",
            .remedy = needed ? "unset what the message names, run launch/setup again, or say "
                               "--backend mpi"
                             : "nothing to do for one process or for training on the processor"};
  });
}

}  // namespace sidestream::launch::doctor
