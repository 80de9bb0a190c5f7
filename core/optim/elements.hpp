// What an optimizer does to one element: the formulas that processor and GPU share, with the
// rounding of its moments from stochastic_rounding.hpp. Products and sums are not fused on either,
// so that both give the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/square_root.hpp"
#include "core/base/vectorize.hpp"
#include "core/optim/adamw.hpp"
#include "core/optim/sgd.hpp"
#include "core/optim/stochastic_rounding.hpp"

namespace sidestream::optim {

struct AdamWElement {
  float weight;
  float first_moment;
  float second_moment;
};

// gradient: already scaled.
SIDESTREAM_INLINE AdamWElement adamw_element(const AdamWElement& old, float gradient,
                                             const AdamWCoefficients& c) {
  AdamWElement now;
  now.first_moment = old.first_moment + (gradient - old.first_moment) * c.one_minus_beta1;
  now.second_moment = old.second_moment * c.beta2 + gradient * gradient * c.one_minus_beta2;
  const float denominator =
      core::square_root(now.second_moment) * c.inverse_sqrt_bias_correction2 + c.eps;
  now.weight = old.weight * c.decay - c.step_size * (now.first_moment / denominator);
  return now;
}

struct SgdElement {
  float weight;
  float momentum;
};

SIDESTREAM_INLINE SgdElement sgd_element(const SgdElement& old, float gradient,
                                         const SgdCoefficients& c) {
  SgdElement now;
  now.momentum = old.momentum * c.momentum + (gradient + old.weight * c.weight_decay);
  now.weight = old.weight - c.lr * now.momentum;
  return now;
}

inline constexpr double kClipEpsilon = 1e-6;  // as torch.nn.utils.clip_grad_norm_

// What one step's update depends on and what people want to see of it, on the device.
struct StepScalars {
  double grad_norm;       // of the averaged gradient, before clipping
  double gradient_scale;  // average and clip factor in one number
  double first_bad_step;  // of the first norm that was not finite; 0: none. No update after it.
};

struct ClipRule {
  double average;     // 1 / (R G)
  double max_norm;    // 0: no clipping
  std::int64_t step;  // 0: a norm that is not finite is not marked
};

// From the sum of squares of the summed gradients.
SIDESTREAM_INLINE StepScalars settle(const StepScalars& old, double sum_of_squares,
                                     const ClipRule& rule) {
  StepScalars now = old;
  now.grad_norm = sqrt(sum_of_squares) * rule.average;
  const double wanted = rule.max_norm / (now.grad_norm + kClipEpsilon);
  const double clip = rule.max_norm > 0 && wanted < 1.0 ? wanted : 1.0;
  now.gradient_scale = rule.average * clip;
  const bool finite = now.grad_norm - now.grad_norm == 0;  // false for NaN and infinity
  if (!finite && old.first_bad_step == 0) now.first_bad_step = static_cast<double>(rule.step);
  return now;
}

}  // namespace sidestream::optim
