// Limits of the shell, the batch system or the container that ranks inherit.
#include <fmt/format.h>

#include <algorithm>

#include "launch/doctor/amounts.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string count_text(std::int64_t count) {
  return count == kUnlimited ? "unlimited" : fmt::format("{}", count);
}

}  // namespace

// Sockets to peers, shards, recordings; mpirun has some for each rank.
std::optional<Finding> check_open_files(const JobFacts& job) {
  const auto least = static_cast<std::int64_t>(64 + 4 * job.ranks.size());
  const std::int64_t comfortable = std::max<std::int64_t>(1024, 4 * least);
  return worst_over(job, Subject::kRank, [&](const RankFacts& rank) -> Finding {
    const std::int64_t limit = rank.limits.open_files;
    Finding finding{.name = "open-files",
                    .found = fmt::format("{} files may be open", count_text(limit))};
    if (limit >= comfortable) return finding;
    finding.level = limit < least ? Level::kError : Level::kWarning;
    finding.expected = fmt::format("{} or more", limit < least ? least : comfortable);
    finding.remedy = fmt::format(
        "ulimit -n {} before the start, or raise nofile in "
        "/etc/security/limits.conf or the batch system",
        comfortable);
    return finding;
  });
}

// Network adapters that read memory themselves, and copies to and from a GPU, lock it.
std::optional<Finding> check_locked_memory(const JobFacts& job) {
  return worst_over(job, Subject::kRank, [&](const RankFacts& rank) -> Finding {
    const std::int64_t limit = rank.limits.locked_bytes;
    Finding finding{.name = "locked-memory",
                    .found = fmt::format("{} may be locked in memory", bytes_text(limit))};
    const bool matters = rank.network.remote_memory && job.topology.node_count > 1;
    if (limit == kUnlimited || !matters) return finding;
    finding.level = limit < 64 * kMiB ? Level::kWarning : Level::kNote;
    finding.expected = "unlimited, for the network adapter of this host (RDMA)";
    finding.remedy =
        "ulimit -l unlimited, memlock in /etc/security/limits.conf, "
        "LimitMEMLOCK=infinity for the batch system's daemon";
    return finding;
  });
}

// LibTorch starts a thread a processor, MPI, the loader and the writer of checkpoints some more.
std::optional<Finding> check_tasks(const JobFacts& job) {
  const int ranks = most_ranks_of_a_host(job);
  return worst_over(job, Subject::kHost, [&](const RankFacts& rank) -> Finding {
    constexpr std::int64_t kOwnThreads = 24;
    const std::int64_t need = rank.processor.machine.processors + ranks * kOwnThreads;
    const std::int64_t limit = rank.limits.tasks;
    Finding finding{.name = "tasks",
                    .found = fmt::format("{} more threads may be started", count_text(limit))};
    if (limit >= need) return finding;
    finding.level = limit < ranks * 4 ? Level::kError : Level::kWarning;
    finding.expected = fmt::format("{} for {} rank(s)", need, ranks);
    finding.remedy = "ulimit -u, or the container's --pids-limit";
    return finding;
  });
}

std::optional<Finding> check_file_size(const JobFacts& job) {
  return worst_over(job, Subject::kRank, [&](const RankFacts& rank) -> Finding {
    const std::int64_t limit = rank.limits.file_bytes;
    Finding finding{.name = "file-size",
                    .found = limit == kUnlimited
                                 ? "files may be of any size"
                                 : fmt::format("files may have {}", bytes_text(limit))};
    if (limit >= job.need.checkpoint_bytes) return finding;
    finding.level = limit < kMiB ? Level::kError : Level::kWarning;
    finding.expected = fmt::format("{}, for a checkpoint of {}",
                                   bytes_text(job.need.checkpoint_bytes), job.need.model);
    finding.remedy = "ulimit -f unlimited before the start";
    return finding;
  });
}

// Mappings count, also those of files and of a GPU's memory: terabytes, though little is used.
std::optional<Finding> check_address_space(const JobFacts& job) {
  const bool limited =
      worst_over(job, Subject::kRank, [](const RankFacts& rank) -> Finding {
        return {.level = rank.limits.address_bytes == kUnlimited ? Level::kOk : Level::kWarning};
      }).level != Level::kOk;
  if (!limited) return std::nullopt;
  return worst_over(job, Subject::kRank, [](const RankFacts& rank) -> Finding {
    Finding finding{
        .name = "address-space",
        .found = fmt::format("{} of address space", bytes_text(rank.limits.address_bytes))};
    if (rank.limits.address_bytes == kUnlimited) return finding;
    finding.level = Level::kWarning;
    finding.expected = "unlimited: CUDA and shared windows map far more than they use";
    finding.remedy = "ulimit -v unlimited before the start; the batch system's memory limit stays";
    return finding;
  });
}

}  // namespace sidestream::launch::doctor
