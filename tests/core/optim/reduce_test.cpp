#include "core/optim/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/optim/block_squares.hpp"
#include "tests/core/optim/random_range.hpp"

namespace sidestream::optim {
namespace {

template <typename T>
double naive_sum(const std::vector<T>& values) {
  long double sum = 0;
  for (const T value : values) {
    const double wide = static_cast<float>(value);
    sum += static_cast<long double>(wide) * wide;
  }
  return static_cast<double>(sum);
}

// The order of additions that holds on every processor: thirty-two sums, then halves of them.
template <typename T>
double in_thirty_two_lanes(const std::vector<T>& values) {
  double lanes[32] = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wide = static_cast<float>(values[i]);
    lanes[i % 32] += wide * wide;
  }
  for (std::size_t width = 16; width > 0; width /= 2)
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

class SumOfSquaresTest : public testing::TestWithParam<std::size_t> {};

TEST_P(SumOfSquaresTest, equals_long_double_loop) {
  const auto values = normal_floats(GetParam(), 1);
  const auto narrow = rounded(values);

  EXPECT_NEAR(sum_of_squares(std::span<const float>(values)), naive_sum(values),
              1e-12 * naive_sum(values));
  EXPECT_NEAR(sum_of_squares(std::span<const core::BFloat16>(narrow)), naive_sum(narrow),
              1e-12 * naive_sum(narrow));
}

TEST_P(SumOfSquaresTest, of_a_block_has_the_bits_of_thirty_two_lanes) {
  const auto values = normal_floats(std::min(GetParam(), kSumBlock), 3);
  const auto narrow = rounded(values);
  const std::vector<core::Float16> halves(values.begin(), values.end());

  EXPECT_EQ(block_squares(values.data(), values.size()), in_thirty_two_lanes(values));
  EXPECT_EQ(block_squares(narrow.data(), narrow.size()), in_thirty_two_lanes(narrow));
  EXPECT_EQ(block_squares(halves.data(), halves.size()), in_thirty_two_lanes(halves));
}

INSTANTIATE_TEST_SUITE_P(Lengths, SumOfSquaresTest,
                         testing::Values(0, 1, 31, 32, 33, 1000, kSumBlock - 1, kSumBlock,
                                         kSumBlock + 1, 3 * kSumBlock + 77));

TEST(SumOfSquaresTest, blocks_computed_apart_give_the_same_bits) {
  const auto values = normal_floats(5 * kSumBlock + 123, 2);
  const std::span<const float> range(values);
  std::vector<double> squares(sum_blocks(values.size()));
  const std::span<double> parts(squares);

  sums_of_squares(range.subspan(2 * kSumBlock), parts.subspan(2));
  sums_of_squares(range.first(kSumBlock), parts.first(1));
  sums_of_squares(range.subspan(kSumBlock, kSumBlock), parts.subspan(1, 1));

  EXPECT_EQ(add_in_order(squares), sum_of_squares(range));
}

TEST(SumOfSquaresTest, large_values_do_not_overflow_and_nan_passes_through) {
  std::vector<float> values(100, 1e30f);
  EXPECT_NEAR(sum_of_squares(std::span<const float>(values)), 1e62, 1e56);

  values[50] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum_of_squares(std::span<const float>(values))));
}

TEST(SumOfSquaresTest, wrong_number_of_blocks_throws) {
  const auto values = normal_floats(kSumBlock + 1, 3);
  std::vector<double> squares(1);

  EXPECT_THROW(sums_of_squares(std::span<const float>(values), squares), core::Error);
}

TEST(ReduceTest, scale_multiplies_every_element) {
  auto values = normal_floats(1003, 4);
  auto narrow = rounded(values);
  const auto before = values;
  const auto narrow_before = narrow;

  scale(std::span<float>(values), 0.3f);
  scale(std::span<core::BFloat16>(narrow), 0.3f);

  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], before[i] * 0.3f);
    ASSERT_EQ(narrow[i].bits, core::BFloat16(static_cast<float>(narrow_before[i]) * 0.3f).bits);
  }
}

TEST(ReduceTest, all_finite_finds_one_bad_value_at_any_place) {
  auto values = normal_floats(2 * kSumBlock + 5, 5);
  ASSERT_TRUE(all_finite(std::span<const float>(values)));
  ASSERT_TRUE(all_finite(std::span<const core::BFloat16>(rounded(values))));

  for (const std::size_t place : {std::size_t{0}, std::size_t{100}, kSumBlock, values.size() - 1}) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      const float good = std::exchange(values[place], bad);
      EXPECT_FALSE(all_finite(std::span<const float>(values))) << place << ": " << bad;
      EXPECT_FALSE(all_finite(std::span<const core::BFloat16>(rounded(values))))
          << place << ": " << bad;
      values[place] = good;
    }
  }
}

TEST(ReduceTest, all_finite_accepts_the_largest_value_and_denormals) {
  const std::vector<float> values{std::numeric_limits<float>::max(),
                                  std::numeric_limits<float>::denorm_min(), -0.0f};

  EXPECT_TRUE(all_finite(std::span<const float>(values)));
}

TEST(ReduceTest, conversions_round_to_nearest_and_widen_exactly) {
  const auto values = normal_floats(1003, 6);
  std::vector<core::BFloat16> narrow(values.size());
  std::vector<float> wide(values.size());

  round_to_bfloat16(values, narrow);
  widen_to_float(narrow, wide);

  EXPECT_TRUE(same_bits(narrow, rounded(values)));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(wide[i], static_cast<float>(narrow[i]));
  EXPECT_THROW(round_to_bfloat16(std::span(values).first(3), narrow), core::Error);
}

}  // namespace
}  // namespace sidestream::optim
