// What limits the occupancy of a launch, by what multiprocessors of its device hold.
#include "profiling/advice/occupancy_limiter.hpp"

#include <gtest/gtest.h>

#include "tests/profiling/advice/traced_facts.hpp"

namespace sidestream::advice {
namespace {

constexpr int kAda = 89, kHopper = 90, kTuring = 75;

trace::DeviceDetail launch_of(std::uint32_t threads, std::uint32_t registers,
                              std::uint32_t shared_bytes = 0) {
  trace::DeviceDetail kernel;
  kernel.block[0] = threads;
  kernel.block[1] = kernel.block[2] = 1;
  kernel.registers_per_thread = static_cast<decltype(kernel.registers_per_thread)>(registers);
  kernel.shared_memory_bytes = shared_bytes;
  return kernel;
}

TEST(OccupancyLimiterTest, registers_leave_room_for_fewer_blocks_than_threads_do) {
  EXPECT_EQ(occupancy_limiter(launch_of(256, 255), kHopper), "registers");
  EXPECT_EQ(occupancy_limiter(launch_of(256, 32), kHopper), "too few blocks");
}

// 65536 / (40 x 256) = 6.4 blocks: fewer than 2048 / 256, more than 1536 / 256.
TEST(OccupancyLimiterTest, the_threads_of_a_multiprocessor_depend_on_the_device) {
  EXPECT_EQ(occupancy_limiter(launch_of(256, 40), kHopper), "registers");
  EXPECT_EQ(occupancy_limiter(launch_of(256, 40), kAda), "too few blocks");
}

// Of 32 threads each, 32 blocks are half of 2048 threads and 16 half of 1024; 48 threads are a
// 32nd of 1536, and 24 blocks hold fewer.
TEST(OccupancyLimiterTest, so_does_the_number_of_its_blocks) {
  EXPECT_EQ(occupancy_limiter(launch_of(32, 16), kHopper), "block size");
  EXPECT_EQ(occupancy_limiter(launch_of(32, 16), kTuring), "block size");
  EXPECT_EQ(occupancy_limiter(launch_of(48, 16), kAda), "block size");
  EXPECT_EQ(occupancy_limiter(launch_of(64, 16), kAda), "too few blocks");
}

TEST(OccupancyLimiterTest, shared_memory_is_left_for_last) {
  EXPECT_EQ(occupancy_limiter(launch_of(256, 32, 64 << 10), kHopper), "shared memory");
  EXPECT_EQ(occupancy_limiter(launch_of(256, 32, 16 << 10), kHopper), "too few blocks");
  EXPECT_EQ(occupancy_limiter(launch_of(256, 255, 64 << 10), kHopper), "registers");
}

TEST(OccupancyLimiterTest, nothing_is_said_of_what_is_not_known) {
  EXPECT_EQ(occupancy_limiter(launch_of(256, 255), std::nullopt), "");
  EXPECT_EQ(occupancy_limiter(launch_of(256, 255), 60), "");
  EXPECT_EQ(occupancy_limiter(launch_of(0, 255), kHopper), "");
  EXPECT_EQ(occupancy_limiter(launch_of(256, 0), kHopper), "");
}

TEST(OccupancyLimiterTest, a_trace_names_kernel_figure_and_limiter) {
  const Facts facts =
      facts_of({.extra_us = 20'000,
                .extras = {{.name = "softmax_forward",
                            .duration_us = 20'000,
                            .occupancy = 10,
                            .arguments = R"(,"block":[256,1,1],"registers per thread":255)"}}});

  ASSERT_TRUE(facts.kernels);
  EXPECT_EQ(facts.kernels->low_occupancy_kernel, "softmax_forward");
  EXPECT_DOUBLE_EQ(facts.kernels->low_occupancy_percent, 10);
  EXPECT_EQ(facts.kernels->low_occupancy_limiter, "registers");
  EXPECT_EQ(facts.kernels->limiters.at("softmax_forward"), "registers");
}

}  // namespace
}  // namespace sidestream::advice
