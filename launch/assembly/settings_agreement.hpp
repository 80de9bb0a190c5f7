// Ranks that were started with other settings train another model than their replicas, in silence.
#pragma once

#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch {

// Collective: throws AgreedError (configuration) on all ranks together where a rank has another
// setting than rank 0; the message names the first one and the rank. What may differ is how a
// rank's host is used: threads, loaders.
void require_same_settings(Session& session, const TrainOptions& options);

}  // namespace sidestream::launch
