// What an optimizer does to one element: the formulas that processor and GPU share, with the
// rounding of its moments from stochastic_rounding.hpp. Products and sums are not fused on either,
// so that both give the same bits.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/base/square_root.hpp"
#include "core/base/vectorize.hpp"
#include "core/optim/adamw.hpp"
#include "core/optim/gradient_scaler.hpp"
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
  double grad_norm = 0;       // of the averaged gradient, before clipping
  double gradient_scale = 0;  // average, clip factor and 1 / loss scale in one number
  double first_bad_step = 0;  // of the first norm that ends it; 0: none. No update after it.
  // With a loss scale:
  LossScaleState loss_scale = {};  // of the next step
  double leaves_out = 0;           // 1: this step's update
  // AdamW's of this update, which has fewer before it than the host knows; 0: those of the job.
  double step_size = 0;
  double inverse_sqrt_bias_correction2 = 0;
};
inline constexpr std::size_t kStepScalars = sizeof(StepScalars) / sizeof(double);

struct ClipRule {
  double average;     // 1 / (R G)
  double max_norm;    // 0: no clipping
  std::int64_t step;  // 0: the norm is asked for, and nothing else changes
  LossScaleConfig loss_scale = {};
  // AdamW's, with a loss scale.
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
};

// What AdamWCoefficients::make() derives from the number of updates.
SIDESTREAM_INLINE StepScalars with_bias_corrections(const StepScalars& old, const ClipRule& rule) {
  StepScalars now = old;
  const double updates = static_cast<double>(rule.step) - old.loss_scale.left_out;
  if (updates < 1) return now;
  now.step_size = rule.lr / (1.0 - pow(rule.beta1, updates));
  now.inverse_sqrt_bias_correction2 = 1.0 / sqrt(1.0 - pow(rule.beta2, updates));
  return now;
}

// From the sum of squares of the summed gradients.
SIDESTREAM_INLINE StepScalars settle(const StepScalars& old, double sum_of_squares,
                                     const ClipRule& rule) {
  const bool scaled = rule.loss_scale.kind != LossScaling::kOff;
  const double average = scaled ? rule.average / old.loss_scale.scale : rule.average;
  StepScalars now = old;
  now.grad_norm = sqrt(sum_of_squares) * average;
  const double wanted = rule.max_norm / (now.grad_norm + kClipEpsilon);
  const double clip = rule.max_norm > 0 && wanted < 1.0 ? wanted : 1.0;
  now.gradient_scale = average * clip;
  if (rule.step == 0 || old.first_bad_step != 0) return now;
  const bool finite = now.grad_norm - now.grad_norm == 0;  // false for NaN and infinity
  const UpdateVerdict verdict = verdict_on(rule.loss_scale, old.loss_scale, finite);
  const bool ends = verdict == UpdateVerdict::kTake ? !finite : verdict == UpdateVerdict::kGiveUp;
  if (ends) now.first_bad_step = static_cast<double>(rule.step);
  if (!scaled || ends) return now;
  now.loss_scale = after_step(rule.loss_scale, old.loss_scale, verdict);
  now.leaves_out = verdict == UpdateVerdict::kLeaveOut ? 1 : 0;
  return with_bias_corrections(now, rule);
}

SIDESTREAM_INLINE bool has_update(const StepScalars& scalars) {
  return scalars.first_bad_step == 0 && scalars.leaves_out == 0;
}

// Coefficients as the number of updates, which the device counts, has them.
SIDESTREAM_INLINE AdamWCoefficients of_step(const AdamWCoefficients& job,
                                            const StepScalars& scalars) {
  if (scalars.inverse_sqrt_bias_correction2 == 0) return job;
  AdamWCoefficients now = job;
  now.step_size = static_cast<float>(scalars.step_size);
  now.inverse_sqrt_bias_correction2 = static_cast<float>(scalars.inverse_sqrt_bias_correction2);
  return now;
}
SIDESTREAM_INLINE SgdCoefficients of_step(const SgdCoefficients& job, const StepScalars&) {
  return job;
}

}  // namespace sidestream::optim
