#include "profiling/record/clock.hpp"

#include <cmath>
#include <limits>

namespace sidestream::record {
namespace {

// More than a correction makes of it, or than two readings are worth: the clock has been set at
// some moment.
bool has_been_set(double shift_ns, double span_ns) {
  constexpr double kFastestCorrection = 1e-3, kUncertaintyNs = 1e6;
  return std::abs(shift_ns) > kFastestCorrection * span_ns + kUncertaintyNs;
}

}  // namespace

ClockReading read_clocks() noexcept {
  constexpr int kTries = 5;
  ClockReading best;
  std::int64_t shortest_ns = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = monotonic_ns();
    const std::int64_t wall = record::realtime_ns();
    const std::int64_t after = monotonic_ns();
    if (after - before >= shortest_ns) continue;
    shortest_ns = after - before;
    best = {before + shortest_ns / 2, wall};
  }
  return best;
}

std::int64_t WallClock::realtime_ns(std::int64_t monotonic_ns) const noexcept {
  const std::int64_t since_begin = monotonic_ns - begin_.monotonic_ns;
  const auto span = static_cast<double>(end_.monotonic_ns - begin_.monotonic_ns);
  const std::int64_t shift =
      (end_.realtime_ns - begin_.realtime_ns) - (end_.monotonic_ns - begin_.monotonic_ns);
  if (span <= 0 || shift == 0 || has_been_set(static_cast<double>(shift), span))
    return begin_.realtime_ns + since_begin;
  const double part = static_cast<double>(since_begin) / span;
  return begin_.realtime_ns + since_begin + std::llround(part * static_cast<double>(shift));
}

}  // namespace sidestream::record
