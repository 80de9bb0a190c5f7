#include "launch/verify/clock_watch.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

void set_frequency(const std::filesystem::path& processor, int kilohertz) {
  std::filesystem::create_directories(processor / "cpufreq");
  std::ofstream(processor / "cpufreq/scaling_cur_freq") << kilohertz << "\n";
}

TEST(ClockWatchTest, the_mean_of_all_processors_since_the_last_take) {
  const core::ScratchFolder scratch;
  set_frequency(scratch / "cpu0", 3'000'000);
  set_frequency(scratch / "cpu1", 1'000'000);
  ClockWatch watch({.processors = scratch.path(), .nvml = "nowhere.so"});

  watch.look();
  watch.look();  // not again within a second
  const verify::Clocks clocks = watch.take();

  ASSERT_TRUE(clocks.cpu_mhz);
  EXPECT_DOUBLE_EQ(*clocks.cpu_mhz, 2000);
  EXPECT_FALSE(clocks.gpu_mhz);
  EXPECT_FALSE(watch.take().any());
}

TEST(ClockWatchTest, a_machine_that_tells_no_clock_gives_none) {
  const core::ScratchFolder scratch;
  ClockWatch watch({.processors = scratch / "missing", .nvml = "nowhere.so"});

  watch.look();

  EXPECT_FALSE(watch.take().any());
}

}  // namespace
}  // namespace sidestream::launch
