// Which numbers of ranks are believed: as many ranks as the greatest of them are looked for.
#pragma once

#include <cstdint>

namespace sidestream::trace {

// More ranks than any job has: what is above is a number out of a damaged file.
inline constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;

constexpr bool is_rank_number(std::int64_t number) { return number >= 0 && number < kMostRanks; }

}  // namespace sidestream::trace
