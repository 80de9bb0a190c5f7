#include "core/optim/adamw.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "tests/core/optim/random_range.hpp"

namespace sidestream::optim {
namespace {

constexpr std::size_t kElements = 1003;  // not a multiple of any vector
constexpr double kScale = 0.125;
const AdamWConfig kConfig{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};

AdamWCoefficients coefficients_at(std::int64_t step) {
  return AdamWCoefficients::make(kConfig, {.step = step,
                                           .lr = 1e-3 * static_cast<double>(step),
                                           .weight_decay = 0.1,
                                           .gradient_scale = kScale});
}

// The textbook, one element after the other, everything in double.
struct NaiveAdamW {
  std::vector<double> weights;
  std::vector<double> first = std::vector<double>(weights.size());
  std::vector<double> second = std::vector<double>(weights.size());

  void update(std::span<const float> gradients, std::int64_t step) {
    const double lr = 1e-3 * static_cast<double>(step);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double g = gradients[i] * kScale;
      first[i] = kConfig.beta1 * first[i] + (1 - kConfig.beta1) * g;
      second[i] = kConfig.beta2 * second[i] + (1 - kConfig.beta2) * g * g;
      const double first_hat = first[i] / (1 - std::pow(kConfig.beta1, step));
      const double second_hat = second[i] / (1 - std::pow(kConfig.beta2, step));
      weights[i] -= lr * kConfig.weight_decay * weights[i];
      weights[i] -= lr * first_hat / (std::sqrt(second_hat) + kConfig.eps);
    }
  }
};

// The state of an optimizer under test.
struct State {
  std::vector<float> weights = normal_floats(kElements, 1);
  std::vector<float> first = std::vector<float>(kElements);
  std::vector<float> second = std::vector<float>(kElements);
  std::vector<core::BFloat16> copy = std::vector<core::BFloat16>(kElements);

  template <typename Gradient>
  AdamWRange<Gradient> range(const std::vector<Gradient>& gradients) {
    return {.weights = weights,
            .gradients = gradients,
            .first_moments = first,
            .second_moments = second};
  }
  template <typename Gradient>
  AdamWRange<Gradient> range_with_copy(const std::vector<Gradient>& gradients) {
    auto all = range(gradients);
    all.low_precision = copy;
    return all;
  }
};

TEST(AdamWTest, twenty_updates_equal_naive_double_loop) {
  State state;
  NaiveAdamW naive{.weights = {state.weights.begin(), state.weights.end()}};

  for (int step = 1; step <= 20; ++step) {
    const auto gradients = normal_floats(kElements, 100 + step);
    adamw_update(state.range(gradients), coefficients_at(step));
    naive.update(gradients, step);
  }

  EXPECT_LT(relative_distance(state.weights, naive.weights), 1e-6);
  EXPECT_LT(relative_distance(state.first, naive.first), 1e-6);
  EXPECT_LT(relative_distance(state.second, naive.second), 1e-6);
}

TEST(AdamWTest, bfloat16_gradients_equal_their_widened_values_bit_for_bit) {
  State narrow;
  State wide;
  const auto gradients = rounded(normal_floats(kElements, 2));
  std::vector<float> widened;
  for (const core::BFloat16 gradient : gradients) widened.push_back(static_cast<float>(gradient));

  adamw_update(narrow.range(gradients), coefficients_at(1));
  adamw_update(wide.range(widened), coefficients_at(1));

  EXPECT_TRUE(same_bits(narrow.weights, wide.weights));
  EXPECT_TRUE(same_bits(narrow.second, wide.second));
}

TEST(AdamWTest, low_precision_copy_is_the_rounded_weight_and_changes_nothing_else) {
  State with_copy;
  State without;
  const auto gradients = normal_floats(kElements, 3);
  const auto narrow_gradients = rounded(gradients);

  for (int step = 1; step <= 3; ++step) {
    adamw_update(with_copy.range_with_copy(gradients), coefficients_at(step));
    adamw_update(without.range(gradients), coefficients_at(step));
  }
  EXPECT_TRUE(same_bits(with_copy.weights, without.weights));
  EXPECT_TRUE(same_bits(with_copy.copy, rounded(with_copy.weights)));

  adamw_update(with_copy.range_with_copy(narrow_gradients), coefficients_at(4));
  EXPECT_TRUE(same_bits(with_copy.copy, rounded(with_copy.weights)));
}

TEST(AdamWTest, any_split_of_the_range_gives_the_same_bits) {
  State whole;
  State split;
  const auto gradients = normal_floats(kElements, 4);
  const auto all = split.range_with_copy(gradients);
  std::mt19937 random(5);

  adamw_update(whole.range_with_copy(gradients), coefficients_at(1));
  for (std::size_t first = 0; first < kElements;) {
    const std::size_t n = std::min<std::size_t>(1 + random() % 50, kElements - first);
    adamw_update(AdamWRange<float>{.weights = all.weights.subspan(first, n),
                                   .gradients = all.gradients.subspan(first, n),
                                   .first_moments = all.first_moments.subspan(first, n),
                                   .second_moments = all.second_moments.subspan(first, n),
                                   .low_precision = all.low_precision.subspan(first, n)},
                 coefficients_at(1));
    first += n;
  }

  EXPECT_TRUE(same_bits(whole.weights, split.weights));
  EXPECT_TRUE(same_bits(whole.first, split.first));
  EXPECT_TRUE(same_bits(whole.second, split.second));
  EXPECT_TRUE(same_bits(whole.copy, split.copy));
}

TEST(AdamWTest, ranges_of_different_length_throw) {
  State state;
  const auto gradients = normal_floats(kElements - 1, 6);

  EXPECT_THROW(adamw_update(state.range(gradients), coefficients_at(1)), core::Error);
}

TEST(AdamWTest, make_below_the_first_step_throws) { EXPECT_THROW(coefficients_at(0), core::Error); }

TEST(AdamWTest, validate_names_flag_and_value) {
  EXPECT_NO_THROW(AdamWConfig{}.validate());
  EXPECT_THROW(AdamWConfig{.beta1 = 1.0}.validate(), core::ConfigError);
  EXPECT_THROW(AdamWConfig{.beta2 = -0.1}.validate(), core::ConfigError);
  EXPECT_THROW(AdamWConfig{.weight_decay = NAN}.validate(), core::ConfigError);
  try {
    AdamWConfig{.eps = -1e-8}.validate();
    FAIL() << "no error";
  } catch (const core::ConfigError& error) {
    EXPECT_STREQ(error.what(), "--eps: expected a number in [1.1e-19, 1], found -1e-08");
  }
  EXPECT_THROW(AdamWConfig{.eps = 0}.validate(), core::ConfigError);  // 0 / 0 where nothing moved
  EXPECT_THROW(AdamWConfig{.eps = 1e-37}.validate(), core::ConfigError);
  EXPECT_NO_THROW(AdamWConfig{.eps = kSmallestEps}.validate());
}

// Squares of these gradients are denormal or zero, which counts the second moment as nothing.
TEST(AdamWTest, smallest_eps_bounds_the_step_of_any_gradient) {
  constexpr double kLr = 1e-3;
  std::vector<float> gradients;
  for (float gradient = 1e-37f; gradient < 1e-12f; gradient *= 1.7f) gradients.push_back(gradient);
  const std::size_t n = gradients.size();
  std::vector<float> weights(n), first(n), second(n);

  adamw_update(AdamWRange<float>{.weights = weights,
                                 .gradients = gradients,
                                 .first_moments = first,
                                 .second_moments = second},
               AdamWCoefficients::make({.eps = kSmallestEps}, {.step = 1, .lr = kLr}));

  // sqrt(1 / (1 - beta2)) where the square was just lost.
  for (std::size_t i = 0; i < n; ++i) EXPECT_LT(std::abs(weights[i]), 4.5 * kLr) << gradients[i];
}

}  // namespace
}  // namespace sidestream::optim
