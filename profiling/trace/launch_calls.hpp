// Which call launched what runs on a device.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

// Rows of runtime calls by their correlation; of several with one, the first in the file.
std::unordered_map<std::uint64_t, std::size_t> launch_calls(const RankTimeline& timeline);

}  // namespace sidestream::trace
