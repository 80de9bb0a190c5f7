// What --nccl-ctas auto makes of measurements, and how bandwidths are defined.
#include "launch/ceilings/nccl_paths.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "launch/ceilings/collective_rate.hpp"

namespace sidestream::launch {
namespace {

using comm::nccl::CtaPolicy;
using comm::nccl::Tuning;

const std::vector<Collective> kOfSlices = {Collective::kReduceScatter, Collective::kAllGather};

CtaPolicy policy(const Tuning& asked, const NcclPaths& measured, int ranks = 8) {
  return tuning_by_measurement(asked, measured, kOfSlices, ranks).cta_policy;
}

TEST(NcclPathsTest, auto_goes_by_what_was_faster) {
  const PathRates copies{.kernels_bytes_per_s = 2e11, .copy_engines_bytes_per_s = 3e11};
  const PathRates kernels{.kernels_bytes_per_s = 3e11, .copy_engines_bytes_per_s = 2e11};
  const NcclPaths both = {{"allgather", {{8, copies}}}, {"reducescatter", {{8, copies}}}};
  const NcclPaths one = {{"allgather", {{8, copies}}}, {"reducescatter", {{8, kernels}}}};

  EXPECT_EQ(policy({}, both), CtaPolicy::kZero);
  EXPECT_EQ(policy({}, one), CtaPolicy::kDefault);
  EXPECT_EQ(policy({}, both, /*ranks=*/4), CtaPolicy::kDefault) << "of other ranks";
  EXPECT_EQ(policy({}, {}), CtaPolicy::kDefault) << "nothing was measured";
  EXPECT_EQ(policy({}, {{"allgather", {{8, copies}}}}), CtaPolicy::kDefault);
}

TEST(NcclPathsTest, what_was_asked_for_stays) {
  const PathRates copies{.kernels_bytes_per_s = 2e11, .copy_engines_bytes_per_s = 3e11};
  const NcclPaths both = {{"allgather", {{8, copies}}}, {"reducescatter", {{8, copies}}}};

  EXPECT_EQ(policy({.windows = false}, both), CtaPolicy::kDefault);
  EXPECT_EQ(policy({.cta_policy = CtaPolicy::kEfficiency}, both), CtaPolicy::kEfficiency);
  EXPECT_EQ(policy({.ctas = 4}, both), CtaPolicy::kDefault);
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
