#include <fmt/format.h>

#include <algorithm>

#include "launch/doctor/amounts.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {

// Ranks of a host keep weights, gradients and moments in windows there. With too little room they
// go on over plain MPI, and several times slower.
std::optional<Finding> check_shared_memory(const JobFacts& job) {
  const bool alone = job.ranks.size() == 1;
  const int ranks = std::max(2, most_ranks_of_a_host(job));
  constexpr std::int64_t kSpareBytes = std::int64_t{32} << 20;
  const std::int64_t wanted = ranks * job.need.rank_bytes + kSpareBytes;
  return worst_over(job, Subject::kHost, [&](const RankFacts& rank) -> Finding {
    const std::int64_t free = rank.memory.shared_free_bytes;
    Finding finding{.name = "shared-memory",
                    .found = free == 0 ? "there is no room in /dev/shm"
                                       : fmt::format("{} free in /dev/shm", bytes_text(free))};
    if (free >= wanted) return finding;
    finding.level = alone ? Level::kNote : Level::kWarning;
    finding.expected =
        fmt::format("{} for {} ranks of {}", bytes_text(wanted), ranks, job.need.model);
    finding.remedy = fmt::format(
        "in a container, start it with --shm-size={}g; elsewhere (as root) mount -o "
        "remount,size={}g /dev/shm",
        (wanted >> 30) + 1, (wanted >> 30) + 1);
    return finding;
  });
}

}  // namespace sidestream::launch::doctor
