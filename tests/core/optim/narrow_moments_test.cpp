// AdamW and SGD with moments in bfloat16: one update against a plain loop, and what many of them do
// that nearest rounding does not.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/optim/flat_problem.hpp"
#include "tests/core/optim/host_kernels.hpp"
#include "tests/core/optim/random_range.hpp"

namespace sidestream::optim {
namespace {

using core::BFloat16;

constexpr std::size_t kElements = 5003;  // no multiple of any vector, more than a block of SGD
constexpr RoundingSource kSource{.seed = 1337, .step = 3};
constexpr std::uint64_t kParameter = 2;

AdamWCoefficients adamw_at(int step) {
  return AdamWCoefficients::make(
      {}, {.step = step, .lr = 1e-3 * step, .weight_decay = 0.1, .gradient_scale = 0.125});
}
constexpr SgdCoefficients kSgd{
    .gradient_scale = 0.25f, .lr = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f};

std::vector<BFloat16> squared(std::vector<float> values) {
  for (float& value : values) value *= value;
  return rounded(values);
}

std::vector<float> widened(const std::vector<BFloat16>& narrow) {
  std::vector<float> wide;
  for (const BFloat16 value : narrow) wide.push_back(static_cast<float>(value));
  return wide;
}

BFloat16 kept(float value, std::size_t element, RoundingHalf half) {
  const std::uint32_t draw = rounding_draw(rounding_place(kSource, kParameter, element), /*i=*/0);
  return round_stochastically(value, half_of(draw, half));
}

struct State {
  std::vector<float> weights = normal_floats(kElements, 1);
  std::vector<BFloat16> first = rounded(normal_floats(kElements, 2, 0.3f));
  std::vector<BFloat16> second = squared(normal_floats(kElements, 3));
  std::vector<BFloat16> copy = std::vector<BFloat16>(kElements);

  template <typename Gradient>
  void adamw(const std::vector<Gradient>& gradients, std::size_t begin, std::size_t n, int step) {
    adamw_update(
        AdamWRange<Gradient, BFloat16>{
            .weights = std::span(weights).subspan(begin, n),
            .gradients = std::span(gradients).subspan(begin, n),
            .first_moments = std::span(first).subspan(begin, n),
            .second_moments = std::span(second).subspan(begin, n),
            .low_precision = std::span(copy).subspan(begin, n),
            .rounding = rounding_place({kSource.seed, step}, kParameter, begin)},
        adamw_at(step));
  }
  template <typename Gradient>
  void sgd(const std::vector<Gradient>& gradients, std::size_t begin, std::size_t n, int step) {
    sgd_update(SgdRange<Gradient, BFloat16>{.weights = std::span(weights).subspan(begin, n),
                                            .gradients = std::span(gradients).subspan(begin, n),
                                            .momentum_buffer = std::span(first).subspan(begin, n),
                                            .low_precision = std::span(copy).subspan(begin, n),
                                            .rounding = rounding_place({kSource.seed, step},
                                                                       kParameter, begin)},
               kSgd);
  }
};

void expect_same(const State& a, const State& b) {
  EXPECT_TRUE(same_bits(a.weights, b.weights));
  EXPECT_TRUE(same_bits(a.first, b.first));
  EXPECT_TRUE(same_bits(a.second, b.second));
  EXPECT_TRUE(same_bits(a.copy, b.copy));
}

// What fp32 moments with the same values give, rounded afterwards.
TEST(NarrowMomentsTest, adamw_update_is_the_one_of_fp32_with_its_moments_rounded) {
  State state;
  std::vector<float> weights = state.weights;
  auto first = widened(state.first), second = widened(state.second);
  const auto gradients = normal_floats(kElements, 4);

  state.adamw(gradients, 0, kElements, kSource.step);
  adamw_update(AdamWRange<float>{.weights = weights,
                                 .gradients = gradients,
                                 .first_moments = first,
                                 .second_moments = second},
               adamw_at(kSource.step));

  EXPECT_TRUE(same_bits(state.weights, weights)) << "made from moments that were rounded already";
  EXPECT_TRUE(same_bits(state.copy, rounded(weights)));
  for (std::size_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(state.first[i].bits, kept(first[i], i, RoundingHalf::kFirstMoment).bits);
    ASSERT_EQ(state.second[i].bits, kept(second[i], i, RoundingHalf::kSecondMoment).bits);
  }
}

// The textbook in double.
TEST(NarrowMomentsTest, adamw_update_follows_the_published_formula) {
  State state;
  const State before;
  const auto gradients = normal_floats(kElements, 4);
  const AdamWConfig config;
  const double lr = 1e-3 * kSource.step;

  state.adamw(gradients, 0, kElements, kSource.step);

  std::vector<double> weights;
  for (std::size_t i = 0; i < kElements; ++i) {
    const double g = 0.125 * gradients[i];
    const double first =
        config.beta1 * static_cast<float>(before.first[i]) + (1 - config.beta1) * g;
    const double second =
        config.beta2 * static_cast<float>(before.second[i]) + (1 - config.beta2) * g * g;
    const double first_hat = first / (1 - std::pow(config.beta1, kSource.step));
    const double second_hat = second / (1 - std::pow(config.beta2, kSource.step));
    weights.push_back(before.weights[i] * (1 - lr * 0.1) -
                      lr * first_hat / (std::sqrt(second_hat) + config.eps));
    constexpr double kLastBit = 1.0 / 128;
    EXPECT_NEAR(static_cast<float>(state.first[i]), first, kLastBit * std::abs(first) + 1e-7);
    EXPECT_NEAR(static_cast<float>(state.second[i]), second, kLastBit * second + 1e-7);
  }
  EXPECT_LT(relative_distance(state.weights, weights), 1e-6);
}

TEST(NarrowMomentsTest, sgd_update_is_the_one_of_fp32_with_its_momentum_rounded) {
  State state;
  std::vector<float> weights = state.weights;
  auto momentum = widened(state.first);
  const auto gradients = normal_floats(kElements, 4);

  state.sgd(gradients, 0, kElements, kSource.step);
  sgd_update(
      SgdRange<float>{.weights = weights, .gradients = gradients, .momentum_buffer = momentum},
      kSgd);

  EXPECT_TRUE(same_bits(state.weights, weights));
  EXPECT_TRUE(same_bits(state.copy, rounded(weights)));
  for (std::size_t i = 0; i < kElements; ++i)
    ASSERT_EQ(state.first[i].bits, kept(momentum[i], i, RoundingHalf::kFirstMoment).bits);
}

TEST(NarrowMomentsTest, bfloat16_gradients_equal_their_widened_values_bit_for_bit) {
  State narrow, wide;
  const auto gradients = rounded(normal_floats(kElements, 5));

  for (int step = 1; step <= 3; ++step) {
    narrow.adamw(gradients, 0, kElements, step);
    wide.adamw(widened(gradients), 0, kElements, step);
    narrow.sgd(gradients, 0, kElements, step);
    wide.sgd(widened(gradients), 0, kElements, step);
  }

  expect_same(narrow, wide);
}

TEST(NarrowMomentsTest, any_split_of_the_range_gives_the_same_bits) {
  State whole, split;
  std::mt19937 random(6);

  for (int step = 1; step <= 3; ++step) {
    const auto gradients = normal_floats(kElements, 10 + static_cast<std::uint32_t>(step));
    whole.adamw(gradients, 0, kElements, step);
    whole.sgd(gradients, 0, kElements, step);
    for (std::size_t begin = 0; begin < kElements;) {
      const std::size_t n = std::min<std::size_t>(1 + random() % 300, kElements - begin);
      split.adamw(gradients, begin, n, step);
      split.sgd(gradients, begin, n, step);
      begin += n;
    }
  }

  expect_same(whole, split);
}

// A second moment that falls by a thousandth a step is stuck where it is rounded to nearest: half
// of its last bit is two to four thousandths.
TEST(NarrowMomentsTest, moments_move_by_less_than_their_last_bit) {
  constexpr int kSteps = 1000;
  State state;
  const std::vector<float> gradients(kElements);
  std::fill(state.second.begin(), state.second.end(), BFloat16(1.0f));
  const AdamWConfig config{.beta2 = 0.999};
  ASSERT_EQ(BFloat16(1.5f * 0.999f).bits, BFloat16(1.5f).bits) << "nearest rounding moves, too";

  for (int step = 1; step <= kSteps; ++step) {
    adamw_update(AdamWRange<float, BFloat16>{.weights = state.weights,
                                             .gradients = gradients,
                                             .first_moments = state.first,
                                             .second_moments = state.second,
                                             .rounding = rounding_place({1, step}, 0, 0)},
                 AdamWCoefficients::make(config, {.step = step, .lr = 0}));
  }

  double sum = 0, squares = 0;
  for (const BFloat16 value : state.second) {
    sum += static_cast<float>(value);
    squares += std::pow(static_cast<float>(value), 2);
  }
  const double mean = sum / kElements;
  const double deviation = std::sqrt(squares / kElements - mean * mean);
  EXPECT_NEAR(mean, std::pow(0.999, kSteps), 4 * deviation / std::sqrt(kElements));
}

// As a device sees it: pieces of flat buffers, gradients in another order.
struct Flat : FlatProblem {
  std::vector<BFloat16> narrow_first = std::vector<BFloat16>(elements);
  std::vector<BFloat16> narrow_second = std::vector<BFloat16>(elements);
  StepScalars scalars{.grad_norm = 1, .gradient_scale = 0.25, .first_bad_step = 0};
  StepRule rule = {};

  template <typename Element>
  std::span<Element> of(std::vector<Element>& all, std::size_t p) const {
    return std::span(all).subspan(weight_at[p], sizes[p]);
  }
  RoundingPlace place(std::size_t p, int step) const {
    return rounding_place({kSource.seed, step}, p, 0);
  }
};

TEST(NarrowMomentsTest, flat_updates_have_the_bits_of_the_processors_optimizer) {
  Flat device, processor;
  HostKernels kernels;
  for (int step = 1; step <= 5; ++step) {
    const auto gradients = device.gradients(static_cast<std::uint32_t>(step));
    device.rule = {.clip = {},
                   .rounding = {kSource.seed, step},
                   .adamw_with_decay = device.adamw(step, true),
                   .adamw_without_decay = device.adamw(step, false),
                   .sgd_with_decay = {},
                   .sgd_without_decay = {}};
    kernels.adamw({.table = {device.pieces.data(), device.pieces.size()},
                   .gradients = {gradients.data(), core::DType::kFloat32},
                   .weights = device.weights.data(),
                   .first_moments = device.narrow_first.data(),
                   .second_moments = device.narrow_second.data(),
                   .low_precision = nullptr,
                   .scalars = &device.scalars,
                   .rule = &device.rule,
                   .moment_dtype = core::DType::kBFloat16},
                  &device);
    for (std::size_t p = 0; p < processor.sizes.size(); ++p) {
      adamw_update(
          AdamWRange<float, BFloat16>{.weights = processor.of(processor.weights, p),
                                      .gradients = std::span(gradients).subspan(
                                          processor.gradient_at[p], processor.sizes[p]),
                                      .first_moments = processor.of(processor.narrow_first, p),
                                      .second_moments = processor.of(processor.narrow_second, p),
                                      .rounding = processor.place(p, step)},
          processor.adamw(step, processor.decays(p), /*scale=*/0.25));
    }
  }
  EXPECT_TRUE(same_bits(device.weights, processor.weights));
  EXPECT_TRUE(same_bits(device.narrow_first, processor.narrow_first));
  EXPECT_TRUE(same_bits(device.narrow_second, processor.narrow_second));
}

TEST(NarrowMomentsTest, flat_sgd_has_the_bits_of_the_processors_optimizer) {
  Flat device, processor;
  HostKernels kernels;
  const SgdCoefficients c{.gradient_scale = 0.25f, .lr = 0.1f, .momentum = 0.9f, .weight_decay = 0};
  for (int step = 1; step <= 5; ++step) {
    const auto gradients = device.gradients(static_cast<std::uint32_t>(step));
    device.rule = {.clip = {},
                   .rounding = {kSource.seed, step},
                   .adamw_with_decay = {},
                   .adamw_without_decay = {},
                   .sgd_with_decay = c,
                   .sgd_without_decay = c};
    kernels.sgd({.table = {device.pieces.data(), device.pieces.size()},
                 .gradients = {gradients.data(), core::DType::kFloat32},
                 .weights = device.weights.data(),
                 .momentum = device.narrow_first.data(),
                 .low_precision = nullptr,
                 .scalars = &device.scalars,
                 .rule = &device.rule,
                 .moment_dtype = core::DType::kBFloat16},
                &device);
    for (std::size_t p = 0; p < processor.sizes.size(); ++p) {
      sgd_update(
          SgdRange<float, BFloat16>{.weights = processor.of(processor.weights, p),
                                    .gradients = std::span(gradients).subspan(
                                        processor.gradient_at[p], processor.sizes[p]),
                                    .momentum_buffer = processor.of(processor.narrow_first, p),
                                    .rounding = processor.place(p, step)},
          c);
    }
  }
  EXPECT_TRUE(same_bits(device.weights, processor.weights));
  EXPECT_TRUE(same_bits(device.narrow_first, processor.narrow_first));
}

}  // namespace
}  // namespace sidestream::optim
