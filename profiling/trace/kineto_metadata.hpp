// The keys of a Kineto file beside its events.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

// distributedInfo, deviceProperties, baseTimeNanoseconds and Sidestream's own object go into
// `info`; everything else, and what does not parse, is left alone. True when the text names the
// rank.
bool read_kineto_metadata(std::string_view key, std::string_view text, RankInfo& info);

// In Sidestream's own object: samples of the system that its recorder had no room for. Among the
// events that a timeline lacks they go by this reason.
inline constexpr const char* kSampleWithoutRoom =
    "sample of the system that found no room in the recorder";
std::uint64_t dropped_samples_in(std::string_view key, std::string_view text);

}  // namespace sidestream::trace
