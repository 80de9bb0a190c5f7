// clock.json beside the traces of a window: what the ranks measured about each other's clocks.
//
//   {"schema": 1, "ranks": [{"rank": 1, "boot_id": "...",
//     "samples": [{"local_ns": 1700000000000000000, "reference_ns": 1700000000000000500,
//     "round_trip_ns": 900}]}]}
//
// A sample is the same moment (the middle of a round trip) on the rank's
// realtime clock and on rank 0's. Ranks with one boot id share a clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/trace/clock_fit.hpp"

namespace sidestream::trace {

struct RankSamples {
  std::string boot_id;
  std::vector<ClockPair> pairs;    // of the shorter half of the round trips
  std::int64_t round_trip_ns = 0;  // the longest of these: the offset is known to half of it
};

using ClockSamples = std::map<int, RankSamples>;

// Nothing when there is no such file. Throws core::DataError for one that does not parse.
std::optional<ClockSamples> read_clock_samples(const std::filesystem::path& file);

}  // namespace sidestream::trace
