#include "core/data/parallel_for.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sidestream::data {
namespace {

TEST(ParallelForTest, call_eachIndexOnce) {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> calls(1000);
    parallel_for({.count = 1000, .threads = threads}, [&](std::uint64_t i, int thread) {
      ++calls[i];
      EXPECT_LT(thread, threads);
    });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelForTest, call_nothingToDo) {
  parallel_for({.count = 0, .threads = 4}, [](std::uint64_t, int) { FAIL(); });
}

TEST(ParallelForTest, call_startsNothingOnceItsTimeIsOver) {
  std::vector<std::atomic<int>> calls(1000);
  std::atomic<int> asked{0};

  const std::uint64_t done =
      parallel_for({.count = 1000, .threads = 3, .is_over = [&] { return ++asked > 10; }},
                   [&](std::uint64_t i, int) { ++calls[i]; });

  EXPECT_EQ(done, 10u);
  for (std::uint64_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], i < done ? 1 : 0);
  EXPECT_EQ(parallel_for({.count = 1000, .threads = 3}, [](std::uint64_t, int) {}), 1000u);
}

// Index 3 fails late and 5 at once: still 3 is reported, and nothing far behind them is started.
TEST(ParallelForTest, call_lowestFailureIsRethrown) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> calls{0};
    const auto work = [&](std::uint64_t i, int) {
      ++calls;
      if (i == 3) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (i == 3 || i == 5) throw std::runtime_error(std::to_string(i));
    };
    try {
      parallel_for({.count = 100000, .threads = 4}, work);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "3");
    }
    EXPECT_LT(calls, 100000);
  }
}

TEST(ParallelForTest, tasks_allRunOnceAndTheFirstFailureIsRethrown) {
  std::array<std::atomic<int>, 3> calls = {};
  parallel_tasks(2, {[&] { ++calls[0]; }, [&] { ++calls[1]; }, [&] { ++calls[2]; }});
  for (const auto& count : calls) EXPECT_EQ(count, 1);

  EXPECT_THROW(parallel_tasks(2, {[] {}, [] { throw std::runtime_error("second"); }}),
               std::runtime_error);
}

}  // namespace
}  // namespace sidestream::data
