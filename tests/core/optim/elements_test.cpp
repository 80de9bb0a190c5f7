// The formulas that GPU kernels use, over the flat layout that they see, against the optimizer of
// the processor.
#include "core/optim/elements.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/core/optim/flat_problem.hpp"
#include "tests/core/optim/host_kernels.hpp"

namespace sidestream::optim {
namespace {

constexpr double kAverage = 0.25;
constexpr double kMaxNorm = 1.0;

struct Device : FlatProblem {
  HostKernels kernels;
  StepScalars scalars{};
  StepRule rule{};
  std::vector<double> squares = std::vector<double>(pieces.size());
  std::vector<double> parameter_squares = std::vector<double>(sizes.size());
  std::vector<float> momentum = std::vector<float>(elements);

  PieceTable table() const { return {pieces.data(), pieces.size()}; }

  void settle(const FlatGradients& gradients, int step, double max_norm = kMaxNorm,
              const SgdCoefficients& sgd = {}) {
    kernels.set_rule({.clip = {.average = kAverage, .max_norm = max_norm, .step = step},
                      .rounding = {},
                      .adamw_with_decay = FlatProblem::adamw(step, true),
                      .adamw_without_decay = FlatProblem::adamw(step, false),
                      .sgd_with_decay = sgd,
                      .sgd_without_decay = sgd},
                     &rule, this);
    kernels.squares({table(), gradients, squares.data()}, this);
    kernels.settle({squares.data(), first_block.data(), sizes.size(), parameter_squares.data(),
                    &scalars, &rule},
                   this);
  }
  void adamw(const FlatGradients& gradients, int step) {
    settle(gradients, step);
    kernels.adamw({table(), gradients, weights.data(), first.data(), second.data(), low.data(),
                   &scalars, &rule},
                  this);
  }
};

FlatGradients view(const std::vector<float>& g) { return {g.data(), core::DType::kFloat32}; }
FlatGradients view(const std::vector<core::BFloat16>& g) {
  return {g.data(), core::DType::kBFloat16};
}

// As DataParallel does it on host ranks, parameter by parameter.
template <typename Gradient>
void update_on_processor(FlatProblem& problem, const std::vector<Gradient>& gradients, int step) {
  double sum = 0;
  const auto gradient_of = [&](std::size_t p) {
    return std::span(gradients).subspan(problem.gradient_at[p], problem.sizes[p]);
  };
  for (std::size_t p = 0; p < problem.sizes.size(); ++p) sum += sum_of_squares(gradient_of(p));
  const double norm = std::sqrt(sum) * kAverage;
  const double scale = kAverage * std::min(1.0, kMaxNorm / (norm + 1e-6));
  for (std::size_t p = 0; p < problem.sizes.size(); ++p) {
    const auto of = [&](auto& all) {
      return std::span(all).subspan(problem.weight_at[p], problem.sizes[p]);
    };
    adamw_update(AdamWRange<Gradient>{.weights = of(problem.weights),
                                      .gradients = gradient_of(p),
                                      .first_moments = of(problem.first),
                                      .second_moments = of(problem.second),
                                      .low_precision = of(problem.low)},
                 problem.adamw(step, problem.decays(p), scale));
  }
}

TEST(ElementsTest, twenty_flat_updates_have_the_bits_of_the_processors_optimizer) {
  Device device;
  FlatProblem processor;

  for (int step = 1; step <= 20; ++step) {
    const auto gradients = device.gradients(100 + static_cast<std::uint32_t>(step));
    device.adamw(view(gradients), step);
    update_on_processor(processor, gradients, step);
  }

  EXPECT_TRUE(same_bits(device.weights, processor.weights));
  EXPECT_TRUE(same_bits(device.first, processor.first));
  EXPECT_TRUE(same_bits(device.second, processor.second));
  EXPECT_TRUE(same_bits(device.low, processor.low));
}

TEST(ElementsTest, bfloat16_gradients_have_the_bits_of_the_processors_optimizer) {
  Device device;
  FlatProblem processor;

  for (int step = 1; step <= 5; ++step) {
    const auto gradients = rounded(device.gradients(static_cast<std::uint32_t>(step)));
    device.adamw(view(gradients), step);
    update_on_processor(processor, gradients, step);
  }

  EXPECT_TRUE(same_bits(device.weights, processor.weights));
  EXPECT_TRUE(same_bits(device.low, processor.low));
}

TEST(ElementsTest, sgd_has_the_bits_of_the_processors_optimizer) {
  Device device;
  FlatProblem processor;
  std::vector<float> momentum(processor.elements);
  const SgdCoefficients c{.gradient_scale = 1, .lr = 0.1f, .momentum = 0.9f, .weight_decay = 0};

  for (int step = 1; step <= 5; ++step) {
    const auto gradients = device.gradients(static_cast<std::uint32_t>(step));
    device.settle(view(gradients), step, /*max_norm=*/0, c);
    device.kernels.sgd({device.table(), view(gradients), device.weights.data(),
                        device.momentum.data(), nullptr, &device.scalars, &device.rule},
                       &device);
    for (std::size_t p = 0; p < processor.sizes.size(); ++p) {
      SgdCoefficients scaled = c;
      scaled.gradient_scale = kAverage;
      sgd_update(
          SgdRange<float>{
              .weights =
                  std::span(processor.weights).subspan(processor.weight_at[p], processor.sizes[p]),
              .gradients =
                  std::span(gradients).subspan(processor.gradient_at[p], processor.sizes[p]),
              .momentum_buffer =
                  std::span(momentum).subspan(processor.weight_at[p], processor.sizes[p])},
          scaled);
    }
  }

  EXPECT_TRUE(same_bits(device.weights, processor.weights));
}

TEST(ElementsTest, settle_clips_only_above_the_limit) {
  const StepScalars low = settle({}, 4.0, {.average = 0.5, .max_norm = 2.0, .step = 1});
  EXPECT_DOUBLE_EQ(low.grad_norm, 1.0);
  EXPECT_DOUBLE_EQ(low.gradient_scale, 0.5);
  const StepScalars high = settle({}, 400.0, {.average = 0.5, .max_norm = 2.0, .step = 1});
  EXPECT_DOUBLE_EQ(high.gradient_scale, 0.5 * 2.0 / (10.0 + 1e-6));
  const StepScalars off = settle({}, 400.0, {.average = 0.5, .max_norm = 0, .step = 1});
  EXPECT_DOUBLE_EQ(off.gradient_scale, 0.5);
}

TEST(ElementsTest, settle_keeps_the_first_step_whose_norm_is_not_finite) {
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::infinity()};
  for (const double sum : bad) {
    StepScalars scalars = settle({}, 1.0, {.average = 1, .max_norm = 1, .step = 6});
    EXPECT_EQ(scalars.first_bad_step, 0);
    scalars = settle(scalars, sum, {.average = 1, .max_norm = 1, .step = 7});
    EXPECT_EQ(scalars.first_bad_step, 7);
    scalars = settle(scalars, 1.0, {.average = 1, .max_norm = 1, .step = 8});
    EXPECT_EQ(scalars.first_bad_step, 7);
  }
}

TEST(ElementsTest, no_update_after_a_bad_step) {
  Device device;
  auto gradients = device.gradients(1);
  const auto before = device.weights;
  gradients[device.gradient_at[1] + 17] = std::numeric_limits<float>::infinity();

  device.adamw(view(gradients), 1);
  device.adamw(view(device.gradients(2)), 2);

  EXPECT_EQ(device.scalars.first_bad_step, 1);
  EXPECT_TRUE(same_bits(device.weights, before));
}

// Norm and gradients are divided by the scale that the loss had; the next one is settled.
TEST(SettleTest, with_a_loss_scale_divides_by_it_and_counts_updates) {
  const ClipRule rule{.average = 0.5,
                      .max_norm = 0,
                      .step = 4,
                      .loss_scale = {.kind = LossScaling::kDynamic, .interval = 2},
                      .lr = 0.1,
                      .beta1 = 0.9,
                      .beta2 = 0.95};
  const StepScalars before{.loss_scale = {.scale = 8, .good_steps = 1, .left_out = 1}};

  const StepScalars now = settle(before, 1024.0, rule);

  EXPECT_EQ(now.grad_norm, 2);
  EXPECT_EQ(now.gradient_scale, 0.5 / 8);
  EXPECT_EQ(now.loss_scale, (LossScaleState{.scale = 16, .good_steps = 0, .left_out = 1}));
  EXPECT_TRUE(has_update(now));
  const AdamWCoefficients job = AdamWCoefficients::make({}, {.step = 4, .lr = 0.1}),
                          third = AdamWCoefficients::make({}, {.step = 3, .lr = 0.1});
  EXPECT_EQ(of_step(job, now).step_size, third.step_size);
  EXPECT_EQ(of_step(job, now).inverse_sqrt_bias_correction2, third.inverse_sqrt_bias_correction2);
  EXPECT_EQ(of_step(job, now).decay, job.decay);
}

TEST(SettleTest, with_a_loss_scale_leaves_out_what_is_not_finite) {
  ClipRule rule{
      .average = 1, .max_norm = 1, .step = 7, .loss_scale = {.kind = LossScaling::kDynamic}};
  const StepScalars before{.loss_scale = {.scale = 8, .good_steps = 5}};

  const StepScalars left_out = settle(before, INFINITY, rule);
  const StepScalars next = settle(left_out, 1, rule);
  rule.step = 0;
  const StepScalars asked = settle(before, INFINITY, rule);

  EXPECT_FALSE(has_update(left_out));
  EXPECT_EQ(left_out.first_bad_step, 0);
  EXPECT_EQ(left_out.loss_scale, (LossScaleState{.scale = 4, .good_steps = 0, .left_out = 1}));
  EXPECT_TRUE(has_update(next));
  EXPECT_EQ(asked.loss_scale, before.loss_scale) << "asking changes nothing";
}

TEST(SettleTest, at_the_least_loss_scale_ends_the_updates) {
  const ClipRule rule{
      .average = 1, .max_norm = 1, .step = 7, .loss_scale = {.kind = LossScaling::kDynamic}};
  const StepScalars before{.loss_scale = {.scale = 1}};

  const StepScalars ended = settle(before, INFINITY, rule);

  EXPECT_EQ(ended.first_bad_step, 7);
  EXPECT_EQ(ended.loss_scale, before.loss_scale);
  EXPECT_FALSE(has_update(settle(ended, 1, rule)));
}

}  // namespace
}  // namespace sidestream::optim
