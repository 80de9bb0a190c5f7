#include "launch/recording/profile_plan.hpp"

#include <gtest/gtest.h>

#include <string>

#include "launch/recording/profile_cost.hpp"

namespace sidestream::launch {
namespace {

// One letter a step: '.' nothing, 'w' warm-up, 'A' active; '[' and ']' around windows.
std::string picture(const ProfilePlan& plan, std::int64_t first, std::int64_t last) {
  std::string text;
  for (std::int64_t step = first; step <= last; ++step) {
    if (plan.begins_window(step)) text += '[';
    switch (plan.part_of(step)) {
      case ProfilePlan::Part::kNothing:
        text += '.';
        break;
      case ProfilePlan::Part::kWarmUp:
        text += 'w';
        break;
      case ProfilePlan::Part::kActive:
        text += 'A';
        break;
    }
    if (plan.ends_window(step)) text += ']';
  }
  return text;
}

TEST(ProfilePlanTest, schedule_repeatsAndEnds) {
  const ProfilePlan plan(ProfileSchedule{.wait = 1, .warmup = 1, .active = 3, .repeat = 2}, 1);

  EXPECT_EQ(picture(plan, 1, 13), ".w[AAA].w[AAA]...");
}

TEST(ProfilePlanTest, resumedRun_countsFromItsFirstStep) {
  const ProfilePlan plan(ProfileSchedule{.wait = 0, .warmup = 1, .active = 1, .repeat = 1}, 101);

  EXPECT_EQ(picture(plan, 99, 104), "..w[A]..");
}

TEST(ProfilePlanTest, windowsSideBySide_areTwo) {
  const ProfilePlan plan(ProfileSchedule{.wait = 0, .warmup = 0, .active = 2, .repeat = 0}, 1);

  EXPECT_EQ(picture(plan, 1, 6), "[AA][AA][AA]");
}

TEST(ProfilePlanTest, firstActiveStep_isKnownBefore) {
  const ProfileSchedule schedule{.wait = 100, .warmup = 1, .active = 1, .repeat = 1};
  EXPECT_EQ(ProfilePlan(schedule, 1).first_active_step(), 102);
  EXPECT_EQ(ProfilePlan(std::nullopt, 1).first_active_step(), std::nullopt);
}

TEST(ProfilePlanTest, withoutASchedule_thereIsNothing) {
  EXPECT_EQ(picture(ProfilePlan(std::nullopt, 1), 1, 3), "...");
}

void add_steps(ProfileCost& cost, std::initializer_list<double> ms, SeenStep seen) {
  for (const double one : ms) cost.add(static_cast<std::int64_t>(one * 1e6), 0, seen);
}

TEST(ProfileCostTest, share_isOfTheMediansWithoutTheStepsThatSetUp) {
  ProfileCost cost;
  add_steps(cost, {1000, 500, 200}, SeenStep::kNot);
  EXPECT_FALSE(cost.plain_steps().has_value());
  add_steps(cost, {9.9, 10, 10.1}, SeenStep::kNot);
  add_steps(cost, {700}, SeenStep::kWarmUp);
  EXPECT_FALSE(cost.share().has_value());
  add_steps(cost, {12, 12, 90}, SeenStep::kYes);

  EXPECT_NEAR(cost.share()->share, 0.2, 1e-12);
  EXPECT_TRUE(cost.share()->is_sure());
  EXPECT_EQ(cost.share()->seen, 3u);
  EXPECT_GE(cost.share()->beside, 3u);
  EXPECT_DOUBLE_EQ(cost.plain_steps()->median, 10);
  EXPECT_NEAR(cost.plain_steps()->deviation, 0.1, 1e-12);
  EXPECT_EQ(cost.plain_steps()->count, 3u);
}

TEST(ProfileCostTest, whatIsLessThanStepsScatter_isNotSure) {
  for (const double seen_ms : {8.0, 10.5}) {
    ProfileCost cost;
    add_steps(cost, {1000, 500, 200, 9, 10, 11, 10, 12, 8}, SeenStep::kNot);
    add_steps(cost, {seen_ms, seen_ms + 0.1, seen_ms - 0.1}, SeenStep::kYes);

    EXPECT_FALSE(cost.share()->is_sure()) << seen_ms;
  }
}

TEST(ProfileCostTest, waitsForData_areOfTheStepsWithoutTheProfiler) {
  constexpr std::int64_t kStepNs = 10'000'000;
  ProfileCost cost;
  add_steps(cost, {1000, 500, 200}, SeenStep::kNot);
  EXPECT_EQ(cost.plain_data_wait_ms(), 0);
  for (const std::int64_t wait_ns : {1'000'000, 4'000'000, 2'000'000})
    cost.add(kStepNs, wait_ns, SeenStep::kNot);
  for (int i = 0; i < 3; ++i) cost.add(kStepNs, 9'000'000, SeenStep::kYes);

  EXPECT_DOUBLE_EQ(cost.plain_data_wait_ms(), 2);
}

// The machine has other work later on: those steps say nothing about the window.
TEST(ProfileCostTest, onlyStepsBesideTheWindow_areComparedWith) {
  ProfileCost cost;
  for (int i = 0; i < 100; ++i) add_steps(cost, {20}, SeenStep::kNot);
  for (int i = 0; i < 40; ++i) add_steps(cost, {10}, SeenStep::kNot);
  add_steps(cost, {12, 12, 12}, SeenStep::kYes);
  for (int i = 0; i < 32; ++i) add_steps(cost, {10}, SeenStep::kNot);
  for (int i = 0; i < 200; ++i) add_steps(cost, {40}, SeenStep::kNot);

  EXPECT_NEAR(cost.share()->share, 0.2, 1e-12);
  EXPECT_EQ(cost.plain_steps()->count, 64u);
}

}  // namespace
}  // namespace sidestream::launch
