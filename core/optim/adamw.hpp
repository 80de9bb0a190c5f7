// AdamW over plain arrays: every element is read and written once, with everything an update needs
// in that one pass.
//
// Owns nothing. Elements are independent of each other and no result depends on how a range is
// split, so callers may give pieces of a range to several threads. All processors give the same
// bits: products and sums are not fused.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/base/dtype.hpp"
#include "core/base/float16.hpp"
#include "core/optim/stochastic_rounding.hpp"

namespace sidestream::optim {

// The root of the smallest normal number of fp32: the square of a gradient below it may count as
// zero where the gradient itself does not, and eps alone is then what bounds the step.
constexpr double kSmallestEps = 1.1e-19;
static_assert(kSmallestEps * kSmallestEps >= double{std::numeric_limits<float>::min()});

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;

  // Throws ConfigError that names the flag, the range and the value.
  void validate() const;
};

// What changes from step to step and from one group of parameters to another.
struct AdamWStep {
  std::int64_t step = 1;  // counts from 1: drives the bias correction
  double lr = 0;
  double weight_decay = 0;    // decoupled: w *= 1 - lr * weight_decay
  double gradient_scale = 1;  // 1 / (R G), loss scale and clip factor in one number
};

// The numbers that the loop needs, derived once a step in double. Formula of torch.optim.AdamW:
//   w *= decay;  m += (g - m) (1 - beta1);  v = beta2 v + (1 - beta2) g^2
//   w -= step_size * m / (sqrt(v) / sqrt(1 - beta2^t) + eps),  step_size = lr / (1 - beta1^t)
struct AdamWCoefficients {
  float gradient_scale;
  float decay;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;
  float inverse_sqrt_bias_correction2;
  float eps;

  // Throws Error for a step below 1.
  static AdamWCoefficients make(const AdamWConfig& config, const AdamWStep& step);
};

// A range of parameters. All spans have the same length; low_precision may be empty (no copy is
// wanted). Moments in bfloat16 are widened, updated in fp32, used for the weights as they are then,
// and kept rounded stochastically.
template <typename Gradient, typename Moment = float, typename Low = core::BFloat16>
struct AdamWRange {
  std::span<float> weights;  // the master weights
  std::span<const Gradient> gradients;
  std::span<Moment> first_moments;
  std::span<Moment> second_moments;
  std::span<Low> low_precision = {};  // receives the updated weights, rounded to nearest even
  RoundingPlace rounding = {};        // of moments in bfloat16
};

// Throws Error when lengths differ. Spans must not overlap. Gradients in float, BFloat16 or
// Float16, moments in float or BFloat16, copies in BFloat16 or Float16; what has a Float16 is
// compiled for every processor alike, the others for each of several.
template <typename Gradient, typename Moment, typename Low>
void adamw_update(const AdamWRange<Gradient, Moment, Low>& range,
                  const AdamWCoefficients& coefficients);

}  // namespace sidestream::optim
