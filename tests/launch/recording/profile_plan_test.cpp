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

TEST(ProfileCostTest, share_isOfTheMediansWithoutTheFirstStep) {
  ProfileCost cost;
  cost.add(1'000'000'000, false);
  EXPECT_FALSE(cost.share().has_value());
  for (const int ms : {9, 10, 11}) cost.add(ms * 1'000'000, false);
  for (const int ms : {12, 12, 90}) cost.add(ms * 1'000'000, true);

  EXPECT_NEAR(cost.share().value(), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(cost.plain_step_ms().value(), 10);
}

}  // namespace
}  // namespace sidestream::launch
