#include "profiling/statistics/late_rank.hpp"

#include <gtest/gtest.h>

#include <cmath>
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
  EXPECT_EQ(late.cost_ns_per_step, std::llround((100 + 70 + 75) / 3.0));
  EXPECT_FALSE(late.may_be_chance());
  EXPECT_DOUBLE_EQ(share_of_costs(steps, {1}), 1);
}

TEST(LateRankTest, ranksThatTakeTurns_mayBeChance) {
  const std::vector<StepWaits> steps = {
      {{0, 0}, {1, 100}}, {{0, 100}, {1, 0}}, {{0, 0}, {1, 110}}, {{0, 100}, {1, 0}}};

  EXPECT_TRUE(least_waiting_rank(steps).may_be_chance());
  EXPECT_EQ(cost_of_last_ranks(steps), (100 + 100 + 110 + 100) / 4);
  EXPECT_NEAR(share_of_costs(steps, {0}), 210.0 / 410, 1e-12);
}

// One rank is last by 40 in all steps but `noisy` ones, in which the other one is by 1000.
std::vector<StepWaits> noisy_steps(int steps, int noisy) {
  std::vector<StepWaits> all;
  for (int i = 0; i < steps; ++i)
    all.push_back(i < noisy ? StepWaits{{0, 0}, {1, 1000}} : StepWaits{{0, 40 + i}, {1, 0}});
  return all;
}

TEST(LateRankTest, aRankLastInMostSteps_isSaidAlthoughItsMeanIsNotSure) {
  const RankJudgement judged = judge_ranks(noisy_steps(16, 2), 1000);

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
  EXPECT_TRUE(judge_ranks(noisy_steps(8, 1), 1000).rotating_ns_per_step);
}

TEST(LateRankTest, aRankLastInTwoStepsOfThree_isNotUsuallyLast) {
  EXPECT_FALSE(usually_last_rank(noisy_steps(300, 100)).has_value());
  EXPECT_TRUE(usually_last_rank(noisy_steps(300, 70)).has_value());
}

TEST(LateRankTest, aRankLastByNothing_isNotWorthAWord) {
  const RankJudgement judged = judge_ranks(noisy_steps(16, 2), 10'000);
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
  EXPECT_DOUBLE_EQ(share_of_costs({{{0, 0}, {1, 0}}}, {0}), 0);
}

// Ranks 1 and 3 share a slow node: they take turns in being the last.
std::vector<StepWaits> steps_of_a_slow_node(int steps) {
  std::vector<StepWaits> all;
  for (int i = 0; i < steps; ++i)
    all.push_back({{0, 620 + i}, {1, i % 2 * 8}, {2, 630 - i}, {3, (i + 1) % 2 * 9}});
  return all;
}

TEST(LateRankTest, ranksThatAreLateAlike_areSaidTogether) {
  const RankJudgement judged = judge_ranks(steps_of_a_slow_node(10), 800);

  ASSERT_TRUE(judged.late.has_value());
  EXPECT_EQ(judged.late->ranks(), (std::vector<int>{1, 3}));
  EXPECT_EQ(ranks_text(*judged.late), "ranks 1 and 3");
  EXPECT_EQ(judged.late->steps_last, 10);
  EXPECT_NEAR(static_cast<double>(judged.late->cost_ns_per_step), 627, 4);
  EXPECT_TRUE(judged.late->is_sure());
}

TEST(LateRankTest, ranksLateAlike_areTheWholeGroupWhereOneOfThemIsAlwaysLast) {
  std::vector<StepWaits> steps;
  for (int i = 0; i < 6; ++i)
    steps.push_back({{0, 300 + i}, {1, 0}, {2, 302}, {3, 1}, {4, 305}, {5, 2}, {6, 299}, {7, 3}});

  const RankJudgement judged = judge_ranks(steps, 800);

  ASSERT_TRUE(judged.late.has_value());
  EXPECT_EQ(ranks_text(*judged.late), "ranks 1, 3, 5 and 7");
  EXPECT_EQ(ranks_text(std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
            "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

TEST(LateRankTest, noGroup_isOneRankMoreThanHalfOrWhatChanceSorts) {
  EXPECT_FALSE(late_group({{{0, 0}, {1, 90}, {2, 100}}, {{0, 0}, {1, 91}, {2, 100}}}));
  EXPECT_FALSE(late_group({{{0, 0}, {1, 1}, {2, 100}}, {{0, 0}, {1, 1}, {2, 101}}}));
  EXPECT_FALSE(
      late_group({{{0, 0}, {1, 30}, {2, 60}, {3, 90}}, {{0, 0}, {1, 30}, {2, 60}, {3, 91}}}))
      << "a ladder";
  EXPECT_FALSE(
      late_group({{{0, 0}, {1, 190}, {2, 600}, {3, 600}}, {{0, 0}, {1, 190}, {2, 600}, {3, 601}}}))
      << "one is a third less late";
  EXPECT_FALSE(late_group(steps_of_a_slow_node(1))) << "one step says nothing of chance";
  std::vector<StepWaits> turns;
  for (int i = 0; i < 20; ++i)
    turns.push_back({{0, i % 4 == 0 ? 0 : 100},
                     {1, i % 4 == 1 ? 0 : 101},
                     {2, i % 4 == 2 ? 0 : 120},
                     {3, i % 4 == 3 ? 0 : 121}});
  EXPECT_FALSE(late_group(turns));
  EXPECT_TRUE(judge_ranks(turns, 800).rotating_ns_per_step.has_value());
}

}  // namespace
}  // namespace sidestream::statistics
