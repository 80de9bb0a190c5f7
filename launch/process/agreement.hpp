// One failure, one message, one exit code on all ranks.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.hpp"
#include "core/base/error.hpp"

namespace sidestream::launch {

using core::AgreedError;

// Runs `work` on every rank, then exchanges how it went. Collective. If a rank failed, all ranks
// throw AgreedError with the message and exit code of the lowest rank that did, tagged with the
// rank unless all ranks say the same. `work` itself must not communicate. `options`: a deadline for
// work that takes long on one rank.
void agree(comm::Communicator& communicator, const std::function<void()>& work,
           const comm::CollectiveOptions& options = {});

}  // namespace sidestream::launch
