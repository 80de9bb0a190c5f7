#include "profiling/record/clock.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace sidestream::record {
namespace {

TEST(ClockTest, reading_takesBothClocksAtOnce) {
  const std::int64_t mono_before = monotonic_ns(), wall_before = realtime_ns();
  const ClockReading reading = read_clocks();
  const std::int64_t mono_after = monotonic_ns(), wall_after = realtime_ns();

  EXPECT_GE(reading.monotonic_ns, mono_before);
  EXPECT_LE(reading.monotonic_ns, mono_after);
  EXPECT_GE(reading.realtime_ns, wall_before);
  EXPECT_LE(reading.realtime_ns, wall_after);
}

TEST(WallClockTest, times_lieOnTheLineThroughBothReadings) {
  // 10 seconds of the monotonic clock, in which realtime gained 1 ms.
  const WallClock wall({.monotonic_ns = 1'000, .realtime_ns = 1'700'000'000'000'000'000},
                       {.monotonic_ns = 10'000'001'000, .realtime_ns = 1'700'000'010'001'000'000});

  EXPECT_EQ(wall.realtime_ns(1'000), 1'700'000'000'000'000'000);
  EXPECT_EQ(wall.realtime_ns(5'000'001'000), 1'700'000'005'000'500'000);
  EXPECT_EQ(wall.realtime_ns(10'000'001'000), 1'700'000'010'001'000'000);
}

TEST(WallClockTest, clockThatWasSet_changesNoDuration) {
  // In 10 seconds of the monotonic clock.
  for (const std::int64_t jump_ns :
       {-3'600'000'000'000, -20'000'000L, 20'000'000L, 3'600'000'000'000}) {
    const WallClock wall(
        {.monotonic_ns = 1'000, .realtime_ns = 1'700'000'000'000'000'000},
        {.monotonic_ns = 10'000'001'000, .realtime_ns = 1'700'000'010'000'000'000 + jump_ns});

    EXPECT_EQ(wall.realtime_ns(1'000), 1'700'000'000'000'000'000) << jump_ns;
    EXPECT_EQ(wall.realtime_ns(5'000'001'000), 1'700'000'005'000'000'000) << jump_ns;
  }
}

TEST(WallClockTest, oneReading_shiftsOnly) {
  const ClockReading reading{.monotonic_ns = 50, .realtime_ns = 1'000};

  EXPECT_EQ(WallClock(reading, reading).realtime_ns(70), 1'020);
}

}  // namespace
}  // namespace sidestream::record
