#include "profiling/statistics/middle.hpp"

#include <gtest/gtest.h>

namespace sidestream::statistics {
namespace {

TEST(MiddleTest, one_value_far_off_moves_neither_median_nor_deviation) {
  const Middle middle = middle_of({10, 11, 9, 10, 500});

  EXPECT_EQ(middle.median, 10);
  EXPECT_EQ(middle.deviation, 1);
  EXPECT_EQ(middle.count, 5u);
}

TEST(MiddleTest, a_difference_is_surer_the_more_values_there_are_and_the_less_they_scatter) {
  const Middle few{.median = 10, .deviation = 1, .count = 3};
  const Middle many{.median = 10, .deviation = 1, .count = 300};
  const Middle exact{.median = 10, .deviation = 0, .count = 300};

  EXPECT_NEAR(difference_uncertainty(few, few), 2 * 1.4826 * 1.2533 * 0.8165, 1e-3);
  EXPECT_LT(difference_uncertainty(many, many), difference_uncertainty(few, many));
  EXPECT_LT(difference_uncertainty(few, many), difference_uncertainty(few, few));
  EXPECT_EQ(difference_uncertainty(exact, exact), 0);
  EXPECT_LT(difference_uncertainty(many, {.median = 9, .deviation = 1}),
            difference_uncertainty(many, many))
      << "how many is not known";
}

}  // namespace
}  // namespace sidestream::statistics
