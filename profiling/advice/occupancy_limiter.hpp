// What keeps a multiprocessor from holding more warps of a kernel.
#pragma once

#include <optional>
#include <string>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::advice {

// "registers", "block size", "shared memory" or "too few blocks". Empty where the launch or the
// device is not known. `compute_capability`: 80 for 8.0.
std::string occupancy_limiter(const trace::DeviceDetail& kernel,
                              std::optional<int> compute_capability);

}  // namespace sidestream::advice
