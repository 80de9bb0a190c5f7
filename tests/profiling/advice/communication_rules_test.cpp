// What rules about collectives claim, and that no two claim the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/advice/advice.hpp"
#include "tests/profiling/advice/facts_maker.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;

TEST(CommunicationRulesTest, exposed_communication_in_tiny_buckets_is_said_once) {
  Facts facts = step_of(100);
  facts.step->compute_ns = 60e6;
  facts.step->exposed_comm_ns = 30e6;
  facts.collectives =
      CollectiveFacts{.per_step = 60, .bytes = 1e7, .small_per_step = 60, .small_exposed_ns = 29e6};
  EXPECT_TRUE(speaks(advise(facts), "tiny-buckets"));
  EXPECT_FALSE(speaks(advise(facts), "not-overlapped"));
  facts.collectives->small_exposed_ns = 4e6;
  EXPECT_TRUE(speaks(advise(facts), "not-overlapped"));
}

TEST(CommunicationRulesTest, overlap_that_is_on_is_not_advised) {
  Facts facts = step_of(100);
  facts.step->compute_ns = 60e6;
  facts.step->exposed_comm_ns = 30e6;
  facts.collectives = CollectiveFacts{.per_step = 6, .bytes = 1e7};
  const auto fix = [&] { return advise(facts).findings.front().fix(); };
  ASSERT_TRUE(speaks(advise(facts), "not-overlapped"));
  EXPECT_EQ(fix(), "--overlap on");
  facts.config["overlap"] = "on";
  EXPECT_NE(fix().find("overlap is on already"), std::string::npos) << fix();
}

// Rank 1 comes 30 ms late to a transfer of 10 ms.
TEST(CommunicationRulesTest, waiting_for_a_late_rank_is_no_bucket_s_and_no_stream_s) {
  Facts facts = step_of(100);
  facts.step->compute_ns = 60e6;
  facts.step_of_rank = {{0, *facts.step}, {1, *facts.step}};
  facts.step_of_rank[0].exposed_comm_ns = 40e6;
  facts.step_of_rank[1].exposed_comm_ns = 10e6;
  facts.step->exposed_comm_ns = 25e6;
  facts.collectives = CollectiveFacts{.per_step = 1,
                                      .bytes = 1e8,
                                      .largest_bytes = 1e8,
                                      .buckets_per_step = 1,
                                      .all_reduce_bytes = 1e8,
                                      .all_reduce_exposed_ns = 25e6,
                                      .gathered_bytes = 1e8};
  facts.straggler = late_rank(1, 30'000'000, "forward");

  const Advice of_bucket = advise(facts);
  facts.kernels = KernelFacts{.one_stream = true};
  const Advice of_stream = advise(facts);

  EXPECT_NEAR(bound_of(of_bucket, "straggler"), 0.3, 1e-9);
  EXPECT_NEAR(bound_of(of_bucket, "one-bucket"), 0.1, 1e-9);
  EXPECT_NEAR(bound_of(of_bucket, "collective-choice"), 0.05, 1e-9);
  EXPECT_THAT(advice_text(of_bucket, {.width_columns = 200}),
              HasSubstr("of it waiting for a rank that is late 30 % of the step"));
  EXPECT_NEAR(bound_of(of_stream, "one-stream"), 0.1, 1e-9);
  EXPECT_FALSE(speaks(of_stream, "one-bucket"));  // the same time
}

// Of a single step: there is no interval.
TEST(CommunicationRulesTest, a_late_rank_that_is_not_sure_takes_nothing_from_other_rules) {
  Facts facts = step_of(100);
  facts.step->compute_ns = 60e6;
  facts.step->exposed_comm_ns = 25e6;
  facts.collectives = CollectiveFacts{.per_step = 4,
                                      .bytes = 1e8,
                                      .largest_bytes = 3e7,
                                      .buckets_per_step = 4,
                                      .all_reduce_bytes = 1e8,
                                      .all_reduce_exposed_ns = 25e6,
                                      .gathered_bytes = 1e8};
  facts.straggler = late_rank(1, 20'000'000, "forward");
  EXPECT_FALSE(speaks(advise(facts), "not-overlapped"));
  facts.straggler->cost_low_ns.reset();
  facts.straggler->cost_high_ns.reset();

  const Advice advice = advise(facts);

  EXPECT_FALSE(speaks(advice, "straggler"));
  EXPECT_NE(needs_of(advice, "straggler"), "");
  EXPECT_NEAR(bound_of(advice, "not-overlapped"), 0.25, 1e-9);
  EXPECT_NEAR(bound_of(advice, "collective-choice"), 0.125, 1e-9);
  EXPECT_THAT(advice_text(advice, {.width_columns = 200}),
              ::testing::Not(HasSubstr("waiting for a rank that is late")));
}

TEST(CommunicationRulesTest, communication_on_the_stream_of_the_compute_is_said_once) {
  Facts facts = step_of(100);
  facts.step->compute_ns = 60e6;
  facts.step->exposed_comm_ns = 20e6;
  facts.collectives = CollectiveFacts{.per_step = 6, .bytes = 1e7};
  facts.kernels = KernelFacts{};
  EXPECT_TRUE(speaks(advise(facts), "not-overlapped"));
  facts.kernels->one_stream = true;
  EXPECT_TRUE(speaks(advise(facts), "one-stream"));
  EXPECT_FALSE(speaks(advise(facts), "not-overlapped"));
}

TEST(CommunicationRulesTest, one_large_parameter_among_buckets_is_no_bucket_that_is_too_large) {
  Facts facts = step_of(100);
  facts.step->compute_ns = 60e6;
  facts.step->exposed_comm_ns = 20e6;
  facts.collectives =
      CollectiveFacts{.per_step = 1, .bytes = 1e8, .largest_bytes = 0.9e8, .buckets_per_step = 1};
  EXPECT_TRUE(speaks(advise(facts), "one-bucket"));
  facts.collectives->buckets_per_step = 4;
  EXPECT_FALSE(speaks(advise(facts), "one-bucket"));
  EXPECT_TRUE(speaks(advise(facts), "not-overlapped"));
}

}  // namespace
}  // namespace sidestream::advice
