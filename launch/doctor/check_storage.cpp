#include <fmt/format.h>

#include "launch/doctor/amounts.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {
namespace {

std::string where_text(const StorageFacts& storage) {
  return fmt::format("{} ({})", storage.folder,
                     storage.filesystem.empty() ? "file system not known" : storage.filesystem);
}

Finding judge_writing(const JobFacts& job, const StorageFacts& storage) {
  constexpr double kSlowSync_s = 0.1, kSlowSave_s = 60;
  Finding finding{.name = "writing"};
  if (!storage.answered) {
    finding.level = Level::kError;
    finding.found = fmt::format("no answer from {}", storage.folder);
    finding.expected = "a file system that answers within 90 s";
    finding.remedy =
        "look at its mount and at the server behind it: whatever touches it now hangs, the ranks "
        "of "
        "a training too; or choose another --run-dir";
    return finding;
  }
  if (!storage.problem.empty()) {
    finding.level = Level::kError;
    finding.found = storage.problem;
    finding.expected = "a folder that all ranks may write to";
    finding.remedy =
        "choose another --run-dir, or look at its owner, its permissions, its mount "
        "(read-only?) and the space on it";
    return finding;
  }
  finding.found = fmt::format("{}: fsync {} (median), 32 MiB at {}", where_text(storage),
                              seconds_text(storage.fsync_s), rate_text(storage.bytes_per_s));
  const double save_s = static_cast<double>(job.need.checkpoint_bytes) / storage.bytes_per_s;
  if (storage.fsync_s > kSlowSync_s || save_s > kSlowSave_s) {
    finding.level = Level::kWarning;
    finding.expected = fmt::format(
        "fsync within {}, a checkpoint of {} ({}) within {}", seconds_text(kSlowSync_s),
        job.need.model, bytes_text(job.need.checkpoint_bytes), seconds_text(kSlowSave_s));
    finding.remedy =
        "a --run-dir on a local disk or a faster file system; or save less often "
        "(--checkpoint-every)";
  } else if (storage.filesystem == "tmpfs" || storage.filesystem == "overlay") {
    finding.level = Level::kNote;
    finding.expected = "a file system that outlives the machine's next start or the container";
    finding.remedy = "a --run-dir on a disk, or on a volume that is mounted into the container";
  }
  return finding;
}

}  // namespace

std::optional<Finding> check_writing(const JobFacts& job) {
  if (!job.ranks.front().storage.probed) return std::nullopt;
  return worst_over(job, Subject::kHost,
                    [&](const RankFacts& rank) { return judge_writing(job, rank.storage); });
}

std::optional<Finding> check_disk_space(const JobFacts& job) {
  const StorageFacts& first = job.ranks.front().storage;
  if (!first.probed || first.filesystem.empty()) return std::nullopt;
  return worst_over(job, Subject::kHost, [&](const RankFacts& rank) -> Finding {
    constexpr std::int64_t kLeast = std::int64_t{64} << 20;
    const std::int64_t free = rank.storage.free_bytes;
    // An older checkpoint stays until the next one is whole.
    const std::int64_t wanted = 3 * job.need.checkpoint_bytes;
    Finding finding{.name = "disk-space",
                    .found = fmt::format("{} free in {}", bytes_text(free), rank.storage.folder)};
    if (free >= wanted) return finding;
    finding.level = free < kLeast ? Level::kError : Level::kWarning;
    finding.expected = free < kLeast ? fmt::format("{} at the very least", bytes_text(kLeast))
                                     : fmt::format("{} for three checkpoints of {}",
                                                   bytes_text(wanted), job.need.model);
    finding.remedy = "make room, choose another --run-dir, or keep fewer (--keep-checkpoints)";
    return finding;
  });
}

// All ranks write into the run directory, and a later start reads what all have written.
std::optional<Finding> check_same_folder(const JobFacts& job) {
  if (job.topology.node_count < 2 || !job.ranks.front().storage.probed) return std::nullopt;
  Finding finding{.name = "same-folder", .found = "the hosts see the same folder"};
  const StorageFacts& first = job.ranks.front().storage;
  for (const std::size_t rank : first_ranks(job)) {
    const StorageFacts& other = job.ranks[rank].storage;
    // Said already, or nothing was written that others could see.
    if (!first.answered || !first.problem.empty() || !other.answered) continue;
    if (other.sees_first) continue;
    finding.level = Level::kError;
    finding.found = fmt::format("{} on {} lacks what was just written there on {}", other.folder,
                                job.topology.hosts[rank], job.topology.hosts[0]);
    finding.expected = "one folder on a file system that all hosts share";
    finding.remedy =
        "a --run-dir on NFS, Lustre or the like: else parts of checkpoints lie on "
        "different hosts; train refuses to start";
    break;
  }
  return finding;
}

}  // namespace sidestream::launch::doctor
