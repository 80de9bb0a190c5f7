#include "launch/trainer/dropout_seed.hpp"

#include <gtest/gtest.h>

#include <set>

namespace sidestream::launch {
namespace {

// Of any shape of the run: a resumed one may have other ranks and other micro-steps.
TEST(DropoutSeedTest, places_have_seeds_of_their_own) {
  constexpr int kSteps = 64, kMicroSteps = 8, kRanks = 16;
  std::set<std::uint64_t> seeds;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    for (int micro_step = 0; micro_step < kMicroSteps; ++micro_step) {
      for (int rank = 0; rank < kRanks; ++rank)
        seeds.insert(dropout_seed(7, {.step = step, .micro_step = micro_step, .rank = rank}));
    }
  }

  EXPECT_EQ(seeds.size(), std::size_t{kSteps} * kMicroSteps * kRanks);
}

TEST(DropoutSeedTest, runs_of_other_seeds_draw_others) {
  const DropoutPlace place{.step = 3, .micro_step = 1, .rank = 2};

  EXPECT_EQ(dropout_seed(7, place), dropout_seed(7, place));
  EXPECT_NE(dropout_seed(7, place), dropout_seed(8, place));
}

}  // namespace
}  // namespace sidestream::launch
