#include "launch/verify/machine_watch.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

void set_frequency(const std::filesystem::path& processor, int kilohertz) {
  std::filesystem::create_directories(processor / "cpufreq");
  std::ofstream(processor / "cpufreq/scaling_cur_freq") << kilohertz << "\n";
}

// An idle processor clocks down, and slows nothing down.
TEST(MachineWatchTest, clocks_of_processors_since_the_last_take_by_how_busy_they_were) {
  const core::ScratchFolder scratch;
  for (int processor = 0; processor < 3; ++processor)
    set_frequency(scratch / ("cpu" + std::to_string(processor)), 1'000'000 * (3 - processor));
  const auto set_busy = [&](int first, int second) {
    std::ofstream(scratch / "stat") << "cpu0 " << first << " 0 0 9 9 0 0 0 0 0\ncpu1 0 0 " << second
                                    << " 9 9 0 0 0 0 0\ncpu2 0 0 0 99 9 0 0 0 0 0\nintr 5\n";
  };
  set_busy(100, 100);
  MachineWatch watch(
      {.processors = scratch.path(), .nvml = "nowhere.so", .processor_times = scratch / "stat"});
  set_busy(400, 200);

  watch.look();
  watch.look();  // not again within a second
  const verify::MachineState clocks = watch.take();

  ASSERT_TRUE(clocks.cpu_mhz);
  EXPECT_DOUBLE_EQ(*clocks.cpu_mhz, 2750);
  EXPECT_FALSE(clocks.gpu_mhz);
  EXPECT_FALSE(watch.take().any());
}

// A processor's times in ticks: busy with what a user runs, and idle.
void set_times(const std::filesystem::path& file, int busy, int idle) {
  std::ofstream(file) << "cpu  " << busy << " 0 0 " << idle << " 0 0 0 0 0 0\n";
}

TEST(MachineWatchTest, what_others_take_of_the_processors) {
  const core::ScratchFolder scratch;
  set_times(scratch / "stat", 1'000'000, 0);
  MachineWatch watch({.processors = scratch / "missing",
                      .nvml = "nowhere.so",
                      .processor_times = scratch / "stat"});
  set_times(scratch / "stat", 1'250'000, 750'000);  // hours: the test itself takes next to nothing

  const verify::MachineState state = watch.take();

  ASSERT_TRUE(state.foreign_cpu);
  EXPECT_NEAR(*state.foreign_cpu, 0.25, 0.001);
}

TEST(MachineWatchTest, a_machine_that_tells_nothing_gives_nothing) {
  const core::ScratchFolder scratch;
  MachineWatch watch({.processors = scratch / "missing",
                      .nvml = "nowhere.so",
                      .processor_times = scratch / "stat"});

  watch.look();

  EXPECT_FALSE(watch.take().any());
}

}  // namespace
}  // namespace sidestream::launch
