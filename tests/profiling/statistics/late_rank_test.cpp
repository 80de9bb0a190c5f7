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

// One rank is last by 40 in all steps but `noisy` ones, in which the other one is by 1000.
std::vector<StepWaits> noisy_steps(int steps, int noisy) {
  std::vector<StepWaits> all;
  for (int i = 0; i < steps; ++i)
    all.push_back(i < noisy ? StepWaits{{0, 0}, {1, 1000}} : StepWaits{{0, 40 + i}, {1, 0}});
  return all;
}

TEST(LateRankTest, aRankLastInMostSteps_isSaidAlthoughItsMeanIsNotSure) {
  const RankJudgement judged = judge_ranks(noisy_steps(16, 2), 1000, [](int) { return 0.5; });

  EXPECT_FALSE(judged.late.has_value());
  EXPECT_FALSE(judged.rotating_ns_per_step.has_value());
  ASSERT_TRUE(judged.usually_last.has_value());
  EXPECT_EQ(judged.usually_last->rank, 1);
  EXPECT_EQ(judged.usually_last->steps_last, 14);
  EXPECT_EQ(judged.usually_last->steps, 16);
  EXPECT_GE(judged.usually_last->median_cost_ns, 40);
  EXPECT_LE(judged.usually_last->median_cost_ns, 56);
}

// 0.035 for one of two ranks that are equals, twice that for either.
TEST(LateRankTest, aRankLastInSevenOfEightSteps_mayBeChance) {
  EXPECT_FALSE(usually_last_rank(noisy_steps(8, 1)).has_value());
  EXPECT_TRUE(usually_last_rank(noisy_steps(8, 0)).has_value());
  EXPECT_TRUE(judge_ranks(noisy_steps(8, 1), 1000, [](int) { return 0.5; }).rotating_ns_per_step);
}

TEST(LateRankTest, aRankLastInTwoStepsOfThree_isNotUsuallyLast) {
  EXPECT_FALSE(usually_last_rank(noisy_steps(300, 100)).has_value());
  EXPECT_TRUE(usually_last_rank(noisy_steps(300, 70)).has_value());
}

TEST(LateRankTest, aRankLastByNothing_isNotWorthAWord) {
  const RankJudgement judged = judge_ranks(noisy_steps(16, 2), 10'000, [](int) { return 0.5; });
  EXPECT_FALSE(judged.usually_last.has_value());
}

TEST(LateRankTest, oneStep_saysNothingOfChance) {
  const LateRank late = least_waiting_rank({{{0, 0}, {1, 5}}});
  EXPECT_FALSE(late.cost_low_ns.has_value());
  EXPECT_FALSE(late.may_be_chance());
  EXPECT_FALSE(late.is_sure());
}

TEST(LateRankTest, twoSteps_tellChanceByHowMuchTheyDiffer) {
  EXPECT_TRUE(least_waiting_rank({{{0, 0}, {1, 5'000}}, {{0, 0}, {1, 9'000}}}).may_be_chance());
  EXPECT_TRUE(least_waiting_rank({{{0, 0}, {1, 5'000}}, {{0, 0}, {1, 5'100}}}).is_sure());
}

TEST(LateRankTest, withoutWaiting_nobodyCausedIt) {
  EXPECT_DOUBLE_EQ(share_of_costs({{{0, 0}, {1, 0}}}, 0), 0);
}

}  // namespace
}  // namespace sidestream::statistics
