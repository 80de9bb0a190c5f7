// The two clocks of a recording: ranges are taken on the monotonic one, which nothing moves; files
// carry realtime, which other programs share. Readings of both at the same moment, at both ends of
// a recording, join them.
#pragma once

#include <cstdint>
#include <ctime>

namespace sidestream::record {

inline std::int64_t read_clock_ns(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}
inline std::int64_t monotonic_ns() noexcept { return read_clock_ns(CLOCK_MONOTONIC); }
inline std::int64_t realtime_ns() noexcept { return read_clock_ns(CLOCK_REALTIME); }

struct ClockReading {
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;
};

// The tightest of a few tries: both clocks within some tens of nanoseconds.
ClockReading read_clocks() noexcept;

// Realtime of a monotonic time, on the straight line through two readings: a realtime clock that is
// being corrected runs a little faster or slower, by the same rate for some seconds. One that has
// been set in between says nothing about rates: times go on from the first reading.
class WallClock {
 public:
  WallClock(const ClockReading& begin, const ClockReading& end) : begin_(begin), end_(end) {}

  std::int64_t realtime_ns(std::int64_t monotonic_ns) const noexcept;

 private:
  ClockReading begin_;
  ClockReading end_;
};

}  // namespace sidestream::record
