// One checkpoint that all ranks go on from.
#pragma once

#include <functional>
#include <optional>

#include "comm/communicator.hpp"
#include "core/checkpoint/checkpoint_store.hpp"

namespace sidestream::launch {

// Collective: what `find` finds on rank 0, opened and verified on every rank; empty: it found none.
// `options`: of both agreements, for ranks that read whole checkpoints. Throws AgreedError, with
// what `find` throws, too.
std::optional<checkpoint::Checkpoint> agreed_checkpoint(
    comm::Communicator& communicator, const comm::CollectiveOptions& options,
    const std::function<std::optional<checkpoint::Checkpoint>()>& find);

}  // namespace sidestream::launch
