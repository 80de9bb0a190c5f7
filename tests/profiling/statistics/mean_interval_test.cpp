#include "profiling/statistics/mean_interval.hpp"

#include <gtest/gtest.h>

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
