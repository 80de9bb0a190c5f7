// Which times are believed.
#pragma once

#include <cstdint>

namespace sidestream::trace {

// Nanoseconds since 1970, until 2043: what is above is damaged. Differences of such times, and
// differences of these, are numbers too.
inline constexpr std::int64_t kLatestNs = std::int64_t{1} << 61;

// 104 days: no recording is as long. Sums of a thousand such durations are numbers.
inline constexpr std::int64_t kLongestNs = std::int64_t{1} << 53;

// `most_ns`: one of these two.
constexpr bool is_within(std::int64_t time_ns, std::int64_t most_ns) {
  return time_ns >= -most_ns && time_ns <= most_ns;
}

}  // namespace sidestream::trace
