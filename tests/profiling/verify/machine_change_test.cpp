#include "profiling/verify/machine_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/verify/run_maker.hpp"

namespace sidestream::verify {
namespace {

using ::testing::HasSubstr;

TEST(MachineChangeTest, means_over_the_runs_of_each_side) {
  const MachineState base[] = {{.cpu_mhz = 3000}, {.cpu_mhz = 3200}};
  const MachineState fresh[] = {{.cpu_mhz = 2900}, {.cpu_mhz = 2990}};
  const auto change = machine_change({{&base[0], &fresh[0]}, {&base[1], &fresh[1]}});

  ASSERT_TRUE(change);
  EXPECT_NEAR(change->ratio().value(), 2945.0 / 3100, 1e-12);
  EXPECT_EQ(clock_warning(*change),
            "clocks fell by 5.0 % from base to new (processors 3100 to 2945 MHz)");
}

TEST(MachineChangeTest, the_clock_of_a_gpu_decides_where_there_is_one) {
  const MachineState base{.cpu_mhz = 3000, .gpu_mhz = 1900},
      fresh{.cpu_mhz = 2000, .gpu_mhz = 1976};
  EXPECT_THAT(clock_warning(*machine_change({{&base, &fresh}})), HasSubstr("clocks rose by 4.0 %"));
  const MachineState same{.gpu_mhz = 1910};
  EXPECT_EQ(clock_warning(*machine_change({{&base, &same}})), "");
}

TEST(MachineChangeTest, what_one_run_did_not_measure_is_not_known) {
  const MachineState known{.cpu_mhz = 3000}, unknown{};
  EXPECT_FALSE(machine_change({{&known, nullptr}}));
  EXPECT_FALSE(machine_change({{&known, &unknown}}));
  EXPECT_FALSE(machine_change({}));
}

TEST(MachineChangeTest, files_keep_what_was_measured) {
  const core::ScratchFolder scratch;
  write_machine_state({.gpu_mhz = 1980, .gpu_held_down = 0.25}, scratch / "machine.json");
  const auto read = read_machine_state(scratch / "machine.json");

  ASSERT_TRUE(read);
  EXPECT_FALSE(read->cpu_mhz);
  EXPECT_EQ(read->gpu_mhz, 1980);
  EXPECT_EQ(read->gpu_held_down, 0.25);
  EXPECT_FALSE(read_machine_state(scratch / "missing.json"));
  write_file(scratch / "bad.json", "no JSON");
  EXPECT_FALSE(read_machine_state(scratch / "bad.json"));
}

}  // namespace
}  // namespace sidestream::verify
