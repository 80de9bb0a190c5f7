// About how long a run takes, before it is started.
#pragma once

#include <optional>

#include "launch/options/train_options.hpp"

namespace sidestream::launch {

// Seconds of a run with these settings on this machine: 6 N FLOPs a trained token and 2 N an
// evaluated one, at the share of the measured ceiling that such runs reach, and the start. Good to
// a factor of two. Empty without measured ceilings (`bench ceilings`) or with data that cannot be
// opened.
std::optional<double> expected_seconds(TrainOptions options, int ranks);

}  // namespace sidestream::launch
