// The deadline of a job's start, without MPI: "ranks" are watches of this process.
#include "comm/setup_watch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sidestream::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60000};
constexpr milliseconds kShort{100};

LauncherEnvironment rank_of(int rank, int size) {
  return {.launched = true,
          .rank = rank,
          .size = size,
          .local_rank = rank,
          .local_size = size,
          .job = "setup_watch_test." + std::to_string(::getpid()),
          .source = {}};
}

TEST(SetupWatchTest, stage_that_is_over_in_time_ends_nothing) {
  constexpr int kRanks = 3;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([rank] {
      for (int round = 0; round < 20; ++round)
        const SetupWatch watch(rank_of(rank, kRanks), SetupWatch::Stage::kStartMpi, kLong);
    });
  }
}

TEST(SetupWatchTest, rank_that_is_alone_has_no_deadline) {
  const SetupWatch watch(rank_of(0, 1), SetupWatch::Stage::kStartMpi, milliseconds(1));

  std::this_thread::sleep_for(kShort);
}

class SetupWatchDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Those of `there` have come when the deadline of the last one of them is over.
  static void let_time_pass(const std::vector<int>& there, int size) {
    std::vector<std::unique_ptr<SetupWatch>> watches;
    for (const int rank : there) {
      const bool last = rank == there.back();
      watches.push_back(std::make_unique<SetupWatch>(
          rank_of(rank, size), SetupWatch::Stage::kMakeCommunicator, last ? kShort : kLong));
    }
    std::this_thread::sleep_for(kLong);
  }
};

TEST_F(SetupWatchDeathTest, rank_that_has_not_come_is_named) {
  EXPECT_EXIT(let_time_pass({0}, 2), ::testing::ExitedWithCode(6),
              "rank 0]: making the communicator: not finished after 100 ms; missing: rank 1 on .* "
              "\\(has not come to it\\). --timeout-setup");
}

TEST_F(SetupWatchDeathTest, where_all_have_come_other_hosts_are_blamed) {
  EXPECT_EXIT(let_time_pass({0, 1}, 2), ::testing::ExitedWithCode(6),
              "rank 1]: .*missing: nobody of the ranks on .*: look at the other hosts");
}

}  // namespace
}  // namespace sidestream::comm
