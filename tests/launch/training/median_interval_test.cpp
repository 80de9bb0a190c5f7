// Between which measurements the median lies: the ranks are those of tables of the binomial test.
#include "launch/ceilings/median_interval.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace sidestream::launch {
namespace {

// 1, 2, .. n, the last ones first.
std::vector<double> falling(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.rbegin(), values.rend(), 1.0);
  return values;
}

TEST(MedianIntervalTest, few_values_have_none) {
  for (int n = 0; n < 6; ++n) EXPECT_FALSE(median_interval(falling(n))) << n;
  EXPECT_TRUE(median_interval(falling(6)));
}

TEST(MedianIntervalTest, ends_are_order_statistics) {
  struct Case {
    int n;
    double low;
    double high;
  };
  for (const Case& one : {Case{6, 1, 6}, Case{10, 2, 9}, Case{25, 8, 18}, Case{100, 40, 61}}) {
    const auto interval = median_interval(falling(one.n));

    ASSERT_TRUE(interval) << one.n;
    EXPECT_EQ(interval->low, one.low) << one.n;
    EXPECT_EQ(interval->high, one.high) << one.n;
    EXPECT_EQ(interval->median, (one.n + 1) / 2.0) << one.n;
  }
}

TEST(MedianIntervalTest, a_stall_moves_nothing) {
  std::vector<double> values = falling(25);
  values.front() = 1e9;

  EXPECT_EQ(median_interval(values)->high, 18);
}

TEST(MedianIntervalTest, holds_the_median_in_95_of_100_cases) {
  std::mt19937 random(1);
  std::exponential_distribution<double> skewed(1.0);
  const double truth = std::log(2.0);
  constexpr int kTrials = 4000;
  int held = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values(25);
    for (double& value : values) value = skewed(random);
    const auto interval = median_interval(values);
    held += interval->low <= truth && truth <= interval->high ? 1 : 0;
  }

  EXPECT_GE(held, 0.94 * kTrials);
  EXPECT_LE(held, 0.98 * kTrials);
}

}  // namespace
}  // namespace sidestream::launch
