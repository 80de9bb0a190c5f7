// The gain is of steps without the profiler: those beside the recorded ones say what they wait for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/advice/advice.hpp"
#include "tests/profiling/advice/facts_maker.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;

// A profiler makes computing longer, so that the loader keeps up better than without it.
TEST(UnprofiledStepsTest, bounds_are_of_a_step_without_the_profiler) {
  Facts facts = step_of(100);
  facts.config["loader-workers"] = "2";
  facts.step->idle_data_ns = 20e6;
  facts.unprofiled_data_wait = {{0, 0.5}};
  const Advice waiting = advise(facts);
  ASSERT_TRUE(speaks(waiting, "input-slow"));
  EXPECT_NEAR(*waiting.findings.front().what.bound, 0.5, 1e-9);
  EXPECT_THAT(advice_text(waiting, {.width_columns = 100}),
              HasSubstr("waiting for data 50 % of the step without the profiler"));

  facts.profiler_cost = 0.25;  // half of a shorter step is half of it all the same
  EXPECT_NEAR(*advise(facts).findings.front().what.bound, 0.5, 1e-9);
  facts.unprofiled_data_wait = {{0, 0.1}};  // less than recorded
  EXPECT_NEAR(*advise(facts).findings.front().what.bound, 0.25, 1e-9);
  facts.step->idle_data_ns = 1e6;  // all hidden by the profiler
  facts.unprofiled_data_wait = {{0, 0.5}};
  EXPECT_TRUE(speaks(advise(facts), "input-slow"));
}

// In each step another rank waits for data, and all others for that rank.
TEST(UnprofiledStepsTest, the_bound_is_of_the_rank_that_waits_longest_in_each_step) {
  Facts facts = step_of(100);
  facts.config["loader-workers"] = "2";
  facts.step->idle_data_ns = 20e6;
  facts.longest_data_wait_ns = 38e6;

  const Advice advice = advise(facts);

  EXPECT_NEAR(*advice.findings.front().what.bound, 0.38, 1e-9);
  EXPECT_THAT(advice_text(advice, {.width_columns = 300}),
              HasSubstr("the rank that waits longest, step by step"));
}

TEST(UnprofiledStepsTest, a_bound_above_its_evidence_says_why) {
  Facts facts = step_of(100);
  facts.step->compute_ns = 60e6;
  facts.step->exposed_comm_ns = 30e6;
  facts.collectives = CollectiveFacts{.per_step = 6, .bytes = 1e7};
  facts.profiler_cost = 0.5;

  const Advice advice = advise(facts);

  EXPECT_NEAR(*advice.findings.front().what.bound, 0.45, 1e-9);
  EXPECT_THAT(advice_text(advice, {.width_columns = 300}),
              HasSubstr("which makes one longer by 50 %"));
}

TEST(UnprofiledStepsTest, a_rank_that_waits_without_the_profiler_is_the_one_named) {
  Facts facts = step_of(100);
  facts.config["loader-workers"] = "2";
  facts.step_of_rank = {{0, *facts.step}, {1, *facts.step}};
  facts.unprofiled_data_wait = {{0, 0.0}, {1, 0.4}};

  const Advice advice = advise(facts);

  ASSERT_TRUE(speaks(advice, "input-slow"));
  EXPECT_EQ(advice.findings.front().what.rank, 1);
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.4, 1e-9);
}

}  // namespace
}  // namespace sidestream::advice
