// Updates with gradients and copies in fp16 against the same update with what they stand for in
// fp32.
#include <gtest/gtest.h>

#include "core/optim/adamw.hpp"
#include "core/optim/reduce.hpp"
#include "core/optim/sgd.hpp"
#include "tests/core/optim/random_range.hpp"

namespace sidestream::optim {
namespace {

constexpr std::size_t kElements = 5003;

struct Halves {
  std::vector<core::Float16> narrow;
  std::vector<float> wide;  // the same numbers

  explicit Halves(std::uint32_t seed) {
    for (const float value : normal_floats(kElements, seed)) {
      narrow.emplace_back(value);
      wide.push_back(static_cast<float>(narrow.back()));
    }
  }
};

struct State {
  std::vector<float> weights = normal_floats(kElements, 1);
  std::vector<float> first = std::vector<float>(kElements), second = first;
  std::vector<core::Float16> copy = std::vector<core::Float16>(kElements);

  template <typename Gradient>
  void adamw(const std::vector<Gradient>& gradients, int step) {
    adamw_update(AdamWRange<Gradient, float, core::Float16>{.weights = weights,
                                                            .gradients = gradients,
                                                            .first_moments = first,
                                                            .second_moments = second,
                                                            .low_precision = copy},
                 AdamWCoefficients::make({}, {.step = step, .lr = 1e-2, .gradient_scale = 0.25}));
  }
  template <typename Gradient>
  void sgd(const std::vector<Gradient>& gradients) {
    sgd_update(SgdRange<Gradient, float, core::Float16>{.weights = weights,
                                                        .gradients = gradients,
                                                        .momentum_buffer = first,
                                                        .low_precision = copy},
               {.gradient_scale = 0.25f, .lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f});
  }
  void expect_copy_of_weights() const {
    for (std::size_t i = 0; i < kElements; ++i)
      ASSERT_EQ(copy[i].bits, core::Float16(weights[i]).bits) << i;
  }
};

TEST(Float16RangeTest, adamw_has_the_bits_of_the_gradients_in_fp32) {
  State narrow, wide;
  for (int step = 1; step <= 5; ++step) {
    const Halves gradients(100 + static_cast<std::uint32_t>(step));
    narrow.adamw(gradients.narrow, step);
    wide.adamw(gradients.wide, step);
  }

  EXPECT_EQ(narrow.weights, wide.weights);
  EXPECT_EQ(narrow.first, wide.first);
  EXPECT_EQ(narrow.second, wide.second);
  narrow.expect_copy_of_weights();
}

TEST(Float16RangeTest, sgd_has_the_bits_of_the_gradients_in_fp32) {
  State narrow, wide;
  for (int step = 1; step <= 5; ++step) {
    const Halves gradients(100 + static_cast<std::uint32_t>(step));
    narrow.sgd(gradients.narrow);
    wide.sgd(gradients.wide);
  }

  EXPECT_EQ(narrow.weights, wide.weights);
  EXPECT_EQ(narrow.first, wide.first);
  narrow.expect_copy_of_weights();
}

TEST(Float16RangeTest, sum_of_squares_is_that_of_fp32) {
  const Halves numbers(3);

  EXPECT_EQ(sum_of_squares(std::span<const core::Float16>(numbers.narrow)),
            sum_of_squares(std::span<const float>(numbers.wide)));
}

}  // namespace
}  // namespace sidestream::optim
