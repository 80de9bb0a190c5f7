// The keys of a Kineto file beside its events.
#pragma once

#include <string_view>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

// distributedInfo, deviceProperties, baseTimeNanoseconds and Sidestream's own object go into
// `info`; everything else, and what does not parse, is left alone. True when the text names the
// rank.
bool read_kineto_metadata(std::string_view key, std::string_view text, RankInfo& info);

}  // namespace sidestream::trace
