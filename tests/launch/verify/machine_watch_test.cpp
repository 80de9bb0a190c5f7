#include "launch/verify/machine_watch.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

void set_frequency(const std::filesystem::path& processor, int kilohertz) {
  std::filesystem::create_directories(processor / "cpufreq");
  std::ofstream(processor / "cpufreq/scaling_cur_freq") << kilohertz << "\n";
}

TEST(MachineWatchTest, the_mean_of_all_processors_since_the_last_take) {
  const core::ScratchFolder scratch;
  set_frequency(scratch / "cpu0", 3'000'000);
  set_frequency(scratch / "cpu1", 1'000'000);
  MachineWatch watch(
      {.processors = scratch.path(), .nvml = "nowhere.so", .processor_times = scratch / "stat"});

  watch.look();
  watch.look();  // not again within a second
  const verify::MachineState clocks = watch.take();

  ASSERT_TRUE(clocks.cpu_mhz);
  EXPECT_DOUBLE_EQ(*clocks.cpu_mhz, 2000);
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
