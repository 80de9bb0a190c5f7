// One checkpoint that all ranks go on from, and what is said of the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"
#include "core/checkpoint/checkpoint_store.hpp"

namespace sidestream::launch {

// Collective: what `find` finds on rank 0, opened and verified on every rank; empty: it found none.
// `options`: of both agreements, for ranks that read whole checkpoints. Throws AgreedError, with
// what `find` throws, too.
std::optional<checkpoint::Checkpoint> agreed_checkpoint(
    comm::Communicator& communicator, const comm::CollectiveOptions& options,
    const std::function<std::optional<checkpoint::Checkpoint>()>& find);

// "set aside as FOLDER: a checkpoint newer than step N, ..."
std::string set_aside_text(const std::filesystem::path& folder, std::int64_t step);

// Throws CheckpointError, with what to do instead, where the folder has checkpoints and none is
// whole. `asked`: what wanted one, as the message begins with it.
void require_one_whole(const checkpoint::NewestCheckpoint& found, std::string_view asked,
                       const std::filesystem::path& folder, std::string_view instead);

}  // namespace sidestream::launch
