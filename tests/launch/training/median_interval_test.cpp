// Between which measurements the median lies: the ranks are those of tables of the binomial test.
#include "launch/ceilings/median_interval.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(SeriesMedianIntervalTest, of_few_values_is_that_of_order_statistics) {
  EXPECT_FALSE(series_median_interval(falling(5)));
  EXPECT_EQ(series_median_interval(falling(10))->low, 2);
  EXPECT_EQ(series_median_interval(falling(10))->high, 9);
}

// The medians of the batches are 0, 0, 1, 1, and there is none of the seventeenth value.
// scipy.stats.t.interval(0.95, 3, loc=0.5, scale=sem([0, 0, 1, 1]))
TEST(SeriesMedianIntervalTest, of_values_like_their_neighbours_is_that_of_batches) {
  std::vector<double> values(17, 0.0);
  std::fill(values.begin() + 9, values.end(), 1.0);
  const auto interval = series_median_interval(values);

  EXPECT_EQ(interval->median, 0);
  EXPECT_NEAR(interval->low, -0.9186931, 1e-6);
  EXPECT_EQ(interval->high, 1) << "that of order statistics, which reaches further";
}

TEST(SeriesMedianIntervalTest, a_stall_moves_nothing) {
  std::vector<double> values(25);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 5);
  const auto before = series_median_interval(values);
  values[7] = 1e9;

  EXPECT_LE(series_median_interval(values)->high, before->high + 2);
}

// A walk that comes back to 0 (first-order autoregressive, 0.9).
TEST(SeriesMedianIntervalTest, of_a_walk_that_comes_back_seldom_leaves_out_the_true_median) {
  std::mt19937 random(7);
  std::normal_distribution<double> kick;
  constexpr int kRuns = 400;
  int wrong = 0, wrong_alone = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> values;
    double at = 0;
    for (int i = 0; i < 256; ++i) values.push_back(at = 0.9 * at + kick(random));
    const auto misses = [](const MedianInterval& one) { return one.low > 0 || one.high < 0; };
    wrong += misses(*series_median_interval(values));
    wrong_alone += misses(*median_interval(values));
  }

  EXPECT_GT(wrong_alone, kRuns / 2);
  EXPECT_LT(wrong, kRuns / 4);
}

}  // namespace
}  // namespace sidestream::launch
