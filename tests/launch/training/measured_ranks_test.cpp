// Measurements that all ranks repeat together: what the slowest takes, and when they end.
#include <gtest/gtest.h>

#include "launch/ceilings/collective_rate.hpp"
#include "launch/ceilings/overlap_rate.hpp"
#include "tests/comm/communicator_fixture.hpp"

namespace sidestream::launch {
namespace {

using test::make_host_communicator;

TEST(RepetitionsTest, each_time_is_that_of_the_rank_that_took_longest) {
  const auto communicator = make_host_communicator(true);
  const double rank = communicator->rank(), last = communicator->size() - 1;
  Repetitions repetitions(*communicator, {.repeats = 1});

  const auto slowest_s = repetitions.slowest_of({1 + rank, 10 - rank, 1e-7 * (rank + 1)});

  EXPECT_DOUBLE_EQ(slowest_s[0], 1 + last);
  EXPECT_DOUBLE_EQ(slowest_s[1], 10);
  EXPECT_NEAR(slowest_s[2], 1e-7 * (last + 1), 1e-15);
  EXPECT_FALSE(repetitions.go_on());
}

TEST(RepetitionsTest, a_number_of_repetitions_is_met_whatever_the_rows) {
  const auto communicator = make_host_communicator(true);
  Repetitions repetitions(*communicator, {.seconds = 1e9, .repeats = 10});
  std::vector<int> rows;

  while (repetitions.go_on()) {
    rows.push_back(repetitions.next(4));
    repetitions.slowest_of({0.0}, rows.back());
  }

  EXPECT_EQ(rows, (std::vector<int>{4, 4, 2}));
  EXPECT_EQ(repetitions.done(), 10);
  EXPECT_FALSE(repetitions.stopped());
}

// Their clocks and thresholds differ; they have to agree all the same.
TEST(RepetitionsTest, the_first_rank_says_when_it_is_enough) {
  const auto communicator = make_host_communicator(true);
  const bool first = communicator->rank() == 0;
  Repetitions repetitions(*communicator, {.seconds = first ? 0.0 : 1e9});

  repetitions.slowest_of({0.0});

  EXPECT_FALSE(repetitions.go_on());
}

TEST(RepetitionsTest, one_rank_that_is_asked_to_stop_ends_it_for_all) {
  const auto communicator = make_host_communicator(true);
  const bool last = communicator->rank() == communicator->size() - 1;
  int asked = 0;
  Repetitions repetitions(*communicator,
                          {.seconds = 1e9, .stop_requested = [&] { return last && ++asked == 3; }});

  while (repetitions.go_on()) repetitions.slowest_of({0.0});

  EXPECT_EQ(repetitions.done(), 3);
  EXPECT_TRUE(repetitions.stopped());
}

TEST(CollectiveRateTest, every_collective_of_every_type_is_measured) {
  const auto communicator = make_host_communicator(true);
  for (const auto collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
    for (const auto dtype : {core::DType::kFloat32, core::DType::kBFloat16, core::DType::kFloat16,
                             core::DType::kInt64}) {
      const CollectiveRate rate = measure_collective(
          *communicator, {.collective = collective, .dtype = dtype}, 4096, {.repeats = 5});

      EXPECT_EQ(rate.repeats, 5);
      EXPECT_GT(rate.least_seconds, 0);
      EXPECT_GE(rate.seconds * (1 + 1e-9), rate.least_seconds);
      EXPECT_LE(rate.bytes, 4096U);
      EXPECT_GT(rate.bytes, 4000U) << "equal parts for the ranks";
      EXPECT_EQ(rate.ranks, communicator->size());
    }
  }
}

TEST(CollectiveRateTest, a_buffer_has_an_element_of_each_rank) {
  const auto communicator = make_host_communicator(true);

  const CollectiveRate rate = measure_collective(*communicator, {}, 1, {.repeats = 1});

  EXPECT_EQ(rate.bytes, sizeof(float) * static_cast<std::size_t>(communicator->size()));
}

TEST(OverlapRateTest, shares_follow_from_times) {
  const OverlapRate all{
      .compute_s = 3, .collective_s = 2, .together_s = 3, .compute_in_company_s = 3};
  const OverlapRate none{
      .compute_s = 3, .collective_s = 2, .together_s = 5, .compute_in_company_s = 4.5};

  EXPECT_DOUBLE_EQ(all.hidden_share(), 1);
  EXPECT_DOUBLE_EQ(all.compute_slowdown(), 0);
  EXPECT_DOUBLE_EQ(none.hidden_share(), 0);
  EXPECT_DOUBLE_EQ(none.compute_slowdown(), 0.5);
}

TEST(OverlapRateTest, all_three_are_measured_and_agree) {
  const auto communicator = make_host_communicator(true);
  for (const auto dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
    const OverlapRate rate =
        measure_overlap(*communicator, {.dtype = dtype}, 1 << 20, torch::kCPU, {.repeats = 4});

    EXPECT_EQ(rate.repeats, 4);
    EXPECT_GT(rate.compute_s, 0);
    EXPECT_GT(rate.collective_s, 0);
    EXPECT_GE(rate.together_s, rate.compute_in_company_s) << "the products end before the wait";
  }
}

}  // namespace
}  // namespace sidestream::launch
