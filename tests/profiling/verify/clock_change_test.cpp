#include "profiling/verify/clock_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/verify/run_maker.hpp"

namespace sidestream::verify {
namespace {

using ::testing::HasSubstr;

TEST(ClockChangeTest, means_over_the_runs_of_each_side) {
  const Clocks base[] = {{.cpu_mhz = 3000}, {.cpu_mhz = 3200}};
  const Clocks fresh[] = {{.cpu_mhz = 2900}, {.cpu_mhz = 2990}};
  const auto change = clock_change({{&base[0], &fresh[0]}, {&base[1], &fresh[1]}});

  ASSERT_TRUE(change);
  EXPECT_NEAR(change->ratio().value(), 2945.0 / 3100, 1e-12);
  EXPECT_EQ(clock_warning(*change),
            "clocks fell by 5.0 % from base to new (processors 3100 to 2945 MHz)");
}

TEST(ClockChangeTest, the_clock_of_a_gpu_decides_where_there_is_one) {
  const Clocks base{.cpu_mhz = 3000, .gpu_mhz = 1900}, fresh{.cpu_mhz = 2000, .gpu_mhz = 1976};
  EXPECT_THAT(clock_warning(*clock_change({{&base, &fresh}})), HasSubstr("clocks rose by 4.0 %"));
  const Clocks same{.gpu_mhz = 1910};
  EXPECT_EQ(clock_warning(*clock_change({{&base, &same}})), "");
}

TEST(ClockChangeTest, what_one_run_did_not_measure_is_not_known) {
  const Clocks known{.cpu_mhz = 3000}, unknown{};
  EXPECT_FALSE(clock_change({{&known, nullptr}}));
  EXPECT_FALSE(clock_change({{&known, &unknown}}));
  EXPECT_FALSE(clock_change({}));
}

TEST(ClockChangeTest, files_keep_what_was_measured) {
  const core::ScratchFolder scratch;
  write_clocks({.gpu_mhz = 1980, .gpu_held_down = 0.25}, scratch / "clocks.json");
  const auto read = read_clocks(scratch / "clocks.json");

  ASSERT_TRUE(read);
  EXPECT_FALSE(read->cpu_mhz);
  EXPECT_EQ(read->gpu_mhz, 1980);
  EXPECT_EQ(read->gpu_held_down, 0.25);
  EXPECT_FALSE(read_clocks(scratch / "missing.json"));
  write_file(scratch / "bad.json", "no JSON");
  EXPECT_FALSE(read_clocks(scratch / "bad.json"));
}

}  // namespace
}  // namespace sidestream::verify
