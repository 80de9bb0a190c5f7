// Which times are believed.
#pragma once

#include <cstdint>

namespace sidestream::trace {

// Nanoseconds since 1970, until 2043: what is above is damaged. Differences of such times, and
// differences of these, are numbers too.
inline constexpr std::int64_t kLatestNs = std::int64_t{1} << 61;

}  // namespace sidestream::trace
