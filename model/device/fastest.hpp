// The fastest of several ways to do the same, by timing them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace sidestream::model::device {

// Of the ways 0 to count - 1, the one of least median time: all are timed in turn, in several
// rounds, so that a clock that rises or falls meanwhile favours none. The first, which was
// recommended, stays where no other is faster by more than what such times vary.
// time(i): how long way i took, in any unit. count: at least 1.
template <typename Time>
std::size_t fastest(std::size_t count, const Time& time) {
  constexpr std::size_t kRounds = 5;
  constexpr float kWorthIt = 0.99f;
  if (count == 1) return 0;
  std::vector<std::array<float, kRounds>> times(count);
  for (std::size_t way = 0; way < count; ++way) time(way);  // the first of each is slower
  for (std::size_t round = 0; round < kRounds; ++round)
    for (std::size_t way = 0; way < count; ++way) times[way][round] = time(way);
  const auto median = [](std::array<float, kRounds>& of) {
    std::nth_element(of.begin(), of.begin() + kRounds / 2, of.end());
    return of[kRounds / 2];
  };
  std::size_t best = 0;
  float least = median(times[0]) * kWorthIt;
  for (std::size_t way = 1; way < count; ++way) {
    const float found = median(times[way]);
    if (found >= least) continue;
    least = found;
    best = way;
  }
  return best;
}

}  // namespace sidestream::model::device
