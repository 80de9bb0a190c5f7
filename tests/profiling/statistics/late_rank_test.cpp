#include "profiling/statistics/late_rank.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sidestream::statistics {
namespace {

TEST(LateRankTest, leastWaitingRank_costsTheMedianOfTheOthers) {
  const std::vector<StepWaits> steps = {
      {{0, 100}, {1, 10}, {2, 120}}, {{0, 110}, {1, 30}, {2, 90}}, {{0, 90}, {1, 20}, {2, 100}}};

  const LateRank late = least_waiting_rank(steps);

  EXPECT_EQ(late.rank, 1);
  EXPECT_EQ(late.steps, 3);
  EXPECT_EQ(late.steps_last, 3);
  EXPECT_EQ(late.cost_ns_per_step, (110 + 80 + 80) / 3);
  EXPECT_FALSE(late.may_be_chance());
  EXPECT_DOUBLE_EQ(share_of_costs(steps, 1), 1);
}

TEST(LateRankTest, ranksThatTakeTurns_mayBeChance) {
  const std::vector<StepWaits> steps = {
      {{0, 0}, {1, 100}}, {{0, 100}, {1, 0}}, {{0, 0}, {1, 110}}, {{0, 100}, {1, 0}}};

  EXPECT_TRUE(least_waiting_rank(steps).may_be_chance());
  EXPECT_EQ(cost_of_last_ranks(steps), (100 + 100 + 110 + 100) / 4);
  EXPECT_NEAR(share_of_costs(steps, 0), 210.0 / 410, 1e-12);
}

TEST(LateRankTest, twoSteps_sayNothingOfChance) {
  const LateRank late = least_waiting_rank({{{0, 0}, {1, 5}}, {{0, 0}, {1, 5}}});
  EXPECT_FALSE(late.cost_low_ns.has_value());
  EXPECT_FALSE(late.may_be_chance());
}

TEST(LateRankTest, withoutWaiting_nobodyCausedIt) {
  EXPECT_DOUBLE_EQ(share_of_costs({{{0, 0}, {1, 0}}}, 0), 0);
}

}  // namespace
}  // namespace sidestream::statistics
