#include "core/optim/sgd.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/core/optim/random_range.hpp"

namespace sidestream::optim {
namespace {

constexpr std::size_t kElements = 5003;  // more than one block, and no multiple of a vector
constexpr SgdCoefficients kCoefficients{
    .gradient_scale = 0.25f, .lr = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f};

struct NaiveSgd {
  std::vector<double> weights;
  std::vector<double> buffer = std::vector<double>(weights.size());

  void update(std::span<const float> gradients, const SgdCoefficients& c) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double g =
          double{gradients[i]} * c.gradient_scale + double{c.weight_decay} * weights[i];
      buffer[i] = double{c.momentum} * buffer[i] + g;
      weights[i] -= double{c.lr} * buffer[i];
    }
  }
};

TEST(SgdTest, twenty_updates_with_momentum_equal_naive_double_loop) {
  auto weights = normal_floats(kElements, 1);
  std::vector<float> buffer(kElements);
  std::vector<core::BFloat16> copy(kElements);
  NaiveSgd naive{.weights = {weights.begin(), weights.end()}};

  for (int step = 1; step <= 20; ++step) {
    const auto gradients = normal_floats(kElements, 100 + step);
    sgd_update(SgdRange<float>{.weights = weights,
                               .gradients = gradients,
                               .momentum_buffer = buffer,
                               .low_precision = copy},
               kCoefficients);
    naive.update(gradients, kCoefficients);
  }

  EXPECT_LT(relative_distance(weights, naive.weights), 1e-6);
  EXPECT_LT(relative_distance(buffer, naive.buffer), 1e-6);
  EXPECT_TRUE(same_bits(copy, rounded(weights)));
}

TEST(SgdTest, without_momentum_no_buffer_is_needed) {
  auto weights = normal_floats(kElements, 1);
  const SgdCoefficients plain{.gradient_scale = 1, .lr = 0.1f};
  NaiveSgd naive{.weights = {weights.begin(), weights.end()}};
  const auto gradients = normal_floats(kElements, 2);

  sgd_update(SgdRange<float>{.weights = weights, .gradients = gradients}, plain);
  naive.update(gradients, plain);

  EXPECT_LT(relative_distance(weights, naive.weights), 1e-6);
}

TEST(SgdTest, bfloat16_gradients_equal_their_widened_values_bit_for_bit) {
  auto narrow = normal_floats(kElements, 1);
  auto wide = narrow;
  std::vector<float> narrow_buffer(kElements);
  std::vector<float> wide_buffer(kElements);
  const auto gradients = rounded(normal_floats(kElements, 2));
  std::vector<float> widened;
  for (const core::BFloat16 gradient : gradients) widened.push_back(static_cast<float>(gradient));

  sgd_update(
      SgdRange<core::BFloat16>{
          .weights = narrow, .gradients = gradients, .momentum_buffer = narrow_buffer},
      kCoefficients);
  sgd_update(SgdRange<float>{.weights = wide, .gradients = widened, .momentum_buffer = wide_buffer},
             kCoefficients);

  EXPECT_TRUE(same_bits(narrow, wide));
  EXPECT_TRUE(same_bits(narrow_buffer, wide_buffer));
}

TEST(SgdTest, momentum_without_buffer_or_wrong_length_throws) {
  auto weights = normal_floats(8, 1);
  const auto gradients = normal_floats(8, 2);
  const auto short_gradients = normal_floats(7, 2);

  EXPECT_THROW(
      sgd_update(SgdRange<float>{.weights = weights, .gradients = gradients}, kCoefficients),
      core::Error);
  EXPECT_THROW(sgd_update(SgdRange<float>{.weights = weights, .gradients = short_gradients}, {}),
               core::Error);
}

TEST(SgdTest, validate_refuses_values_out_of_range) {
  EXPECT_NO_THROW(SgdConfig{}.validate());
  EXPECT_THROW(SgdConfig{.momentum = 1.0}.validate(), core::ConfigError);
  EXPECT_THROW(SgdConfig{.weight_decay = -1}.validate(), core::ConfigError);
}

}  // namespace
}  // namespace sidestream::optim
