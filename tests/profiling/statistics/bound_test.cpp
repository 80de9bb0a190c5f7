// What bounds a run is said as surely as its steps agree.
#include "profiling/statistics/bound.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sidestream::statistics {
namespace {

StepParts sum_of(const std::vector<StepParts>& steps) {
  StepParts sum;
  for (const StepParts& step : steps) sum.add(step);
  return sum;
}

TEST(BoundTest, steps_that_agree_make_it_sure) {
  std::vector<StepParts> steps;
  for (int i = 0; i < 10; ++i)
    steps.push_back({.window_ns = 100, .io_ns = 10, .comm_ns = 20.0 + i % 2, .compute_ns = 60});

  const auto bound = find_bound(sum_of(steps), steps, kOnProcessor);

  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->word, "compute");
  EXPECT_EQ(bound->runner_up, "comm");
  EXPECT_TRUE(bound->is_sure());
  EXPECT_NEAR(bound->io + bound->cpu + bound->compute + bound->comm, 1, 1e-12);
  EXPECT_EQ(text_of(*bound).find("computing (it leads communication by "), 0u) << text_of(*bound);
}

TEST(BoundTest, steps_that_do_not_agree_make_it_unsure) {
  std::vector<StepParts> steps;
  for (int i = 0; i < 10; ++i) {
    const double compute_ns = i % 2 == 0 ? 70 : 31;
    steps.push_back({.window_ns = 100, .comm_ns = 100 - compute_ns, .compute_ns = compute_ns});
  }

  const auto bound = find_bound(sum_of(steps), steps, kOnGpu);

  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->word, "gpu");
  EXPECT_FALSE(bound->is_sure());
  EXPECT_EQ(
      text_of(*bound).find("computing or by communication: not sure (the first minus the second: "),
      0u)
      << text_of(*bound);
}

// The lead is that of the shares it stands beside, and one step that makes it makes it unsure.
TEST(BoundTest, long_step_weighs_as_much_as_its_time) {
  std::vector<StepParts> steps(20, {.window_ns = 100, .comm_ns = 10, .compute_ns = 90});
  steps.push_back({.window_ns = 2000, .comm_ns = 2000});

  const auto bound = find_bound(sum_of(steps), steps, kOnProcessor);

  ASSERT_TRUE(bound.has_value() && bound->lead.has_value());
  EXPECT_EQ(bound->word, "comm");
  EXPECT_NEAR(bound->lead->mean, bound->comm - bound->compute, 1e-12);
  EXPECT_FALSE(bound->is_sure());
}

TEST(BoundTest, newest_steps_may_be_the_other_way_round) {
  const std::vector<StepParts> steps(20, {.window_ns = 100, .comm_ns = 10, .compute_ns = 90});
  StepParts sum = sum_of(steps);
  sum.add({.window_ns = 20000, .comm_ns = 20000});

  const auto bound = find_bound(sum, steps, kOnProcessor);

  EXPECT_EQ(bound->word, "comm");
  EXPECT_EQ(text_of(*bound),
            "communication or by computing: not sure (the second leads the first by 80.0 to 80.0 % "
            "of a step in the newest steps, 95 %)");
}

TEST(BoundTest, one_part_leads_another_by_a_whole_step_at_most) {
  std::vector<StepParts> steps;
  for (const double compute_ns : {100, 40, 100})
    steps.push_back({.window_ns = 100, .compute_ns = compute_ns});

  const auto bound = find_bound(sum_of(steps), steps, kOnProcessor);

  ASSERT_TRUE(bound.has_value() && bound->lead.has_value());
  EXPECT_EQ(bound->lead->high, 1);
  EXPECT_GE(bound->lead->low, -1);
}

TEST(BoundTest, two_steps_say_nothing_about_how_sure_it_is) {
  const std::vector<StepParts> steps(2, {.window_ns = 100, .io_ns = 60});

  const auto bound = find_bound(sum_of(steps), steps, kOnProcessor);

  ASSERT_TRUE(bound.has_value());
  EXPECT_FALSE(bound->lead.has_value());
  EXPECT_FALSE(bound->is_sure());
  EXPECT_EQ(text_of(*bound),
            "waiting for data: not sure (too few steps to tell how far it leads other work of the "
            "host)");
  EXPECT_FALSE(find_bound({}, {}, kOnProcessor).has_value());
}

}  // namespace
}  // namespace sidestream::statistics
