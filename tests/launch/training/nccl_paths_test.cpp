// What --nccl-ctas auto makes of measurements, and how bandwidths are defined.
#include "launch/ceilings/nccl_paths.hpp"

#include <gtest/gtest.h>

#include "launch/ceilings/collective_rate.hpp"

namespace sidestream::launch {
namespace {

using comm::nccl::CtaPolicy;
using comm::nccl::Tuning;

CtaPolicy policy(const Tuning& asked, const GatherPaths& measured, int ranks = 8) {
  return tuning_by_measurement(asked, measured, {.count = ranks}).cta_policy;
}

TEST(NcclPathsTest, auto_goes_by_what_was_faster) {
  const PathRates copies{.kernels_bytes_per_s = 2e11, .copy_engines_bytes_per_s = 3e11};
  const PathRates kernels{.kernels_bytes_per_s = 3e11, .copy_engines_bytes_per_s = 2e11};

  EXPECT_EQ(policy({}, {{8, copies}}), CtaPolicy::kZero);
  EXPECT_EQ(policy({}, {{8, kernels}}), CtaPolicy::kDefault);
  EXPECT_EQ(policy({}, {{8, {3e11, 3e11}}}), CtaPolicy::kZero) << "as fast, and takes nothing";
  EXPECT_EQ(policy({}, {{4, kernels}, {8, copies}}, /*ranks=*/4), CtaPolicy::kDefault);
  EXPECT_EQ(policy({}, {{8, copies}}, /*ranks=*/2), CtaPolicy::kDefault) << "of other ranks";
  EXPECT_EQ(policy({}, {}), CtaPolicy::kDefault) << "nothing was measured";
}

TEST(NcclPathsTest, auto_leaves_captured_gathers_to_kernels) {
  const GatherPaths copies = {{8, {2e11, 3e11}}};
  const GatheringRanks ranks{.count = 8, .captures = true};

  EXPECT_EQ(tuning_by_measurement({}, copies, ranks).cta_policy, CtaPolicy::kDefault);
  EXPECT_EQ(tuning_by_measurement({.cta_policy = CtaPolicy::kZero}, copies, ranks).cta_policy,
            CtaPolicy::kZero);
}

TEST(NcclPathsTest, what_was_asked_for_stays) {
  const GatherPaths copies = {{8, {2e11, 3e11}}};

  EXPECT_EQ(policy({.windows = false}, copies), CtaPolicy::kDefault);
  EXPECT_EQ(policy({.cta_policy = CtaPolicy::kEfficiency}, copies), CtaPolicy::kEfficiency);
  EXPECT_EQ(policy({.ctas = 4}, copies), CtaPolicy::kDefault);
}

// nccl-tests, doc/PERFORMANCE.md.
TEST(CollectiveRateTest, bandwidths_are_those_of_nccl_tests) {
  const auto rate = [](Collective collective, int ranks) {
    return CollectiveRate{.bytes = 1000, .seconds = 2, .ranks = ranks, .collective = collective};
  };
  for (const auto collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    EXPECT_EQ(rate(collective, 4).algorithm_bytes_per_s(), 500) << name_of(collective);
  EXPECT_EQ(rate(Collective::kAllReduce, 4).bus_bytes_per_s(), 750);
  EXPECT_EQ(rate(Collective::kAllGather, 4).bus_bytes_per_s(), 375);
  EXPECT_EQ(rate(Collective::kReduceScatter, 4).bus_bytes_per_s(), 375);
}

}  // namespace
}  // namespace sidestream::launch
