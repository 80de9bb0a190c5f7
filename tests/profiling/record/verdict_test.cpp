#include "profiling/record/verdict.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sidestream::record {
namespace {

TEST(PhaseVerdictTest, largestShareOfAllRanks_isTheWord) {
  const std::vector<PhaseTotals> ranks = {
      {.steps = 2, .window_ns = 100, .io_ns = 70, .compute_ns = 20, .comm_ns = 10},
      {.steps = 2, .window_ns = 100, .io_ns = 0, .compute_ns = 20, .comm_ns = 70}};

  const auto verdict = find_verdict(ranks);

  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->word, "comm");
  EXPECT_DOUBLE_EQ(verdict->io, 0.35);
  EXPECT_DOUBLE_EQ(verdict->comm, 0.4);
  EXPECT_DOUBLE_EQ(verdict->gpu, 0.2);
  EXPECT_NEAR(verdict->cpu, 0.05, 1e-12);
  EXPECT_EQ(verdict->steps, 2);
  EXPECT_EQ(describe(*verdict),
            "computing 20 %, collectives 40 %, data 35 %, other work of the host 5 %: bound by "
            "collectives");
}

TEST(PhaseVerdictTest, withoutSteps_thereIsNone) {
  EXPECT_FALSE(find_verdict(std::vector<PhaseTotals>(2)).has_value());
}

}  // namespace
}  // namespace sidestream::record
