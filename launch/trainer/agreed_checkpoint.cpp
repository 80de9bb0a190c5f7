#include "launch/trainer/agreed_checkpoint.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "core/base/error.hpp"
#include "launch/process/agreement.hpp"

namespace sidestream::launch {
namespace {

// Hashes are computed once a node: its ranks read the same files.
checkpoint::Checkpoint open_as_rank_0_did(const std::filesystem::path& folder,
                                          const comm::Topology& topology) {
  try {
    return checkpoint::open_checkpoint(folder, topology.local_rank == 0
                                                   ? checkpoint::VerifyDepth::kHashes
                                                   : checkpoint::VerifyDepth::kSizes);
  } catch (const core::CheckpointError& error) {
    throw core::CheckpointError(fmt::format(
        "{}. Rank 0 reads the same checkpoint without a fault: is the run directory on a file "
        "system that all nodes share?",
        error.what()));
  }
}

}  // namespace

std::optional<checkpoint::Checkpoint> agreed_checkpoint(
    comm::Communicator& communicator, const comm::CollectiveOptions& options,
    const std::function<std::optional<checkpoint::Checkpoint>()>& find) {
  std::optional<checkpoint::Checkpoint> found;
  std::string mine;
  agree(
      communicator,
      [&] {
        if (communicator.rank() == 0) found = find();
        if (found) mine = std::filesystem::absolute(found->folder).string();
      },
      options);
  const std::filesystem::path folder =
      communicator.exchange(mine, {.purpose = "checkpoint to resume"}).front();
  if (folder.empty()) return std::nullopt;
  agree(
      communicator,
      [&] {
        if (communicator.rank() != 0) found = open_as_rank_0_did(folder, communicator.topology());
      },
      options);
  return found;
}

std::string set_aside_text(const std::filesystem::path& folder, std::int64_t step) {
  return fmt::format(
      "set aside as {}: a checkpoint newer than step {}, from where training goes on",
      folder.string(), step);
}

void require_one_whole(const checkpoint::NewestCheckpoint& found, std::string_view asked,
                       const std::filesystem::path& folder, std::string_view instead) {
  if (found.checkpoint || found.skipped.empty()) return;
  throw core::CheckpointError(
      fmt::format("{}: none of the {} checkpoints of {} can be used; the newest: {}. {}", asked,
                  found.skipped.size(), folder.string(), found.skipped.front().reason, instead));
}

}  // namespace sidestream::launch
