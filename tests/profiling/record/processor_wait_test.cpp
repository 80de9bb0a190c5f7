#include "profiling/record/processor_wait.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace sidestream::record {
namespace {

ThreadTimes thread(std::int64_t run_ns, std::int64_t wait_ns) {
  return {.name = "", .run_ns = run_ns, .wait_ns = wait_ns};
}

TEST(ProcessorWaitTest, is_of_the_thread_that_waits_most_of_what_it_wanted) {
  const ThreadTable before = {{1, thread(500, 100)}, {2, thread(500, 900)}, {3, thread(0, 0)}};
  const ThreadTable after = {{1, thread(1300, 300)},   // 200 of 1000
                             {2, thread(1200, 1000)},  // 100 of 800
                             {3, thread(10, 200)}};    // of 1000 it wanted 210
  EXPECT_DOUBLE_EQ(*processor_wait(before, after, 1000), 0.2);
}

TEST(ProcessorWaitTest, takes_threads_that_began_meanwhile_and_leaves_those_that_ended) {
  EXPECT_DOUBLE_EQ(*processor_wait({{1, thread(9, 9)}}, {{2, thread(300, 100)}}, 1000), 0.25);
}

TEST(ProcessorWaitTest, is_nothing_where_no_thread_wanted_a_processor) {
  EXPECT_FALSE(processor_wait({}, {{1, thread(100, 100)}}, 1000).has_value());
  EXPECT_FALSE(processor_wait({{1, thread(0, 0)}}, {{1, thread(0, 0)}}, 0).has_value());
  EXPECT_FALSE(processor_wait({}, {}, 1000).has_value());
}

// Four times as many threads as processors: each has one for a quarter of the time, and nothing
// that another program does makes that more.
TEST(ProcessorWaitTest, is_seen_of_this_process) {
  const ProcessorWait wait;
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads(4 * std::max(1u, std::thread::hardware_concurrency()));
  for (std::jthread& one : threads)
    one = std::jthread([&] {
      while (!over) {
      }
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(350));

  const std::optional<double> share = wait.share();

  over = true;
  const bool kernel_keeps_times = read_threads().begin()->second.run_ns > 0;
  ASSERT_EQ(share.has_value(), kernel_keeps_times);
  EXPECT_GT(share.value_or(0.5), 0.3);
  EXPECT_LE(share.value_or(0.5), 1);
}

}  // namespace
}  // namespace sidestream::record
