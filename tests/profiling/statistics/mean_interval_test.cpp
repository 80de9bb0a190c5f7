#include "profiling/statistics/mean_interval.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "profiling/statistics/median.hpp"

namespace sidestream::statistics {
namespace {

// scipy.stats.t.interval(0.95, 4, loc=3, scale=sem([1, 2, 3, 4, 5]))
TEST(MeanIntervalTest, ofFiveValues_isStudents) {
  const auto interval = mean_interval(std::vector<double>{1, 2, 3, 4, 5});

  ASSERT_TRUE(interval.has_value());
  EXPECT_DOUBLE_EQ(interval->mean, 3);
  EXPECT_NEAR(interval->low, 1.0367568385224393, 1e-12);
  EXPECT_NEAR(interval->high, 4.9632431614775605, 1e-12);
}

TEST(MeanIntervalTest, pickedAmongMany_isWider) {
  const std::vector<double> values = {1, 2, 3, 4, 5};
  EXPECT_LT(mean_interval(values, 8)->low, mean_interval(values)->low);
  EXPECT_DOUBLE_EQ(mean_interval(values, 8)->mean, 3);
}

// scipy.stats.t.interval(0.95, 1, loc=1.5, scale=0.5)
TEST(MeanIntervalTest, ofTwoValues_isVeryWideWhereItIsWanted) {
  EXPECT_FALSE(mean_interval(std::vector<double>{1, 2}).has_value());
  const auto interval = mean_interval(std::vector<double>{1, 2}, 1, 2);

  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->low, -4.853102368087347, 1e-9);
  EXPECT_NEAR(interval->high, 7.853102368087347, 1e-9);
}

TEST(MeanIntervalTest, ofOneValue_thereIsNone) {
  EXPECT_FALSE(mean_interval(std::vector<double>{1}, 1, 1).has_value());
}

double half_of(const std::optional<Interval>& interval) { return interval->high - interval->mean; }

TEST(SeriesIntervalTest, ofFewValues_isStudents) {
  const std::vector<double> values = {1, 2, 3, 4, 5};
  EXPECT_DOUBLE_EQ(series_interval(values)->low, mean_interval(values)->low);
  EXPECT_FALSE(series_interval(std::vector<double>{1, 2}).has_value());
}

// Batches of four: 0.5 each, so that they say less scatter than the values do.
TEST(SeriesIntervalTest, ofValuesThatTakeTurns_isStudents) {
  std::vector<double> values;
  for (int i = 0; i < 16; ++i) values.push_back(i % 2);
  EXPECT_DOUBLE_EQ(half_of(series_interval(values)), half_of(mean_interval(values)));
}

// The means of the batches are 0, 0, 1, 1; of the seventeenth value there is no batch.
// scipy.stats.t.interval(0.95, 3, loc=0.5, scale=sem([0, 0, 1, 1]))
TEST(SeriesIntervalTest, ofValuesLikeTheirNeighbours_isThatOfBatches) {
  std::vector<double> values = {0};
  for (int i = 0; i < 16; ++i) values.push_back(i < 8 ? 0 : 1);
  const auto interval = series_interval(values);

  EXPECT_NEAR(interval->mean, 8.0 / 17, 1e-12);
  EXPECT_NEAR(half_of(interval), 0.9186931, 1e-6);
  EXPECT_LT(half_of(mean_interval(values)), 0.27);
}

// What this is for: a walk that comes back to 0 (first-order autoregressive, 0.9), of which the
// interval of independent values leaves out the true mean in two runs of three, that of batches in
// one of six.
TEST(SeriesIntervalTest, ofAWalkThatComesBack_seldomLeavesOutTheTrueMean) {
  std::mt19937 random(7);
  std::normal_distribution<double> kick;
  constexpr int kRuns = 400;
  int wrong = 0, wrong_alone = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> values;
    double at = 0;
    for (int i = 0; i < 256; ++i) values.push_back(at = 0.9 * at + kick(random));
    const auto misses = [](const Interval& one) { return one.low > 0 || one.high < 0; };
    wrong += misses(*series_interval(values));
    wrong_alone += misses(*mean_interval(values));
  }
  EXPECT_GT(wrong_alone, kRuns / 2);
  EXPECT_LT(wrong, kRuns / 4);
}

TEST(UpperMedianTest, isOneOfTheValues) {
  EXPECT_EQ(upper_median(std::vector<int>{5, 1, 3}), 3);
  EXPECT_EQ(upper_median(std::vector<int>{4, 1, 3, 2}), 3);
  EXPECT_EQ(upper_median(std::vector<int>{}), 0);
  EXPECT_EQ(median(std::vector<int>{5, 1, 3}), 3);
  EXPECT_EQ(median(std::vector<int>{9, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<int>{}), 0);
}

}  // namespace
}  // namespace sidestream::statistics
