// Lanes for ranges that overlap each other: what is in flight lies on no thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sidestream::trace {

// The first lane that is free, made where none is; `busy_until` has the end of the last range of
// each. To be asked in the order of starts.
inline std::size_t take_lane(std::vector<std::int64_t>& busy_until, std::int64_t start_ns,
                             std::int64_t end_ns) {
  const auto free = std::find_if(busy_until.begin(), busy_until.end(),
                                 [&](std::int64_t until) { return until <= start_ns; });
  const auto lane = static_cast<std::size_t>(free - busy_until.begin());
  if (free == busy_until.end())
    busy_until.push_back(end_ns);
  else
    *free = end_ns;
  return lane;
}

}  // namespace sidestream::trace
