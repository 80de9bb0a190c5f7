#include "core/optim/adamw.hpp"

#include <cmath>
#include <string>

#include "core/base/error.hpp"
#include "core/base/vectorize.hpp"
#include "core/optim/check.hpp"
#include "core/optim/elements.hpp"

namespace sidestream::optim {
namespace {

// Plain pointers that do not alias: what the compiler needs to vectorise the loop.
template <typename Gradient, typename Moment>
struct Pointers {
  float* __restrict weights;
  const Gradient* __restrict gradients;
  Moment* __restrict first_moments;
  Moment* __restrict second_moments;
  RoundingPlace rounding;
};

template <typename Gradient, typename Moment>
SIDESTREAM_INLINE float update_element(const Pointers<Gradient, Moment>& p, std::size_t i,
                                       const AdamWCoefficients& c) {
  const float gradient = static_cast<float>(p.gradients[i]) * c.gradient_scale;
  const AdamWElement now = adamw_element({p.weights[i], static_cast<float>(p.first_moments[i]),
                                          static_cast<float>(p.second_moments[i])},
                                         gradient, c);
  const std::uint32_t draw = rounding_draw(p.rounding, static_cast<std::uint32_t>(i));
  p.first_moments[i] = kept_moment<Moment>(now.first_moment, draw, RoundingHalf::kFirstMoment);
  p.second_moments[i] = kept_moment<Moment>(now.second_moment, draw, RoundingHalf::kSecondMoment);
  p.weights[i] = now.weight;
  return now.weight;
}

// Clones for several processors cannot be templates, hence one function per kind of gradient,
// moment and copy; fp16, which trains on GPUs, has templates.
using F32 = float;
using BF16 = core::BFloat16;
using F16 = core::Float16;

template <typename Gradient, typename Moment>
void update(const Pointers<Gradient, Moment>& p, std::size_t n, const AdamWCoefficients& c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

template <typename Gradient, typename Moment, typename Low>
void update_and_copy(const Pointers<Gradient, Moment>& p, Low* __restrict copy, std::size_t n,
                     const AdamWCoefficients& c) {
  for (std::size_t i = 0; i < n; ++i) copy[i] = Low(update_element(p, i, c));
}

SIDESTREAM_VECTORIZED void update(const Pointers<F32, F32> p, std::size_t n,
                                  const AdamWCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

SIDESTREAM_VECTORIZED void update(const Pointers<BF16, F32> p, std::size_t n,
                                  const AdamWCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

SIDESTREAM_VECTORIZED void update(const Pointers<F32, BF16> p, std::size_t n,
                                  const AdamWCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

SIDESTREAM_VECTORIZED void update(const Pointers<BF16, BF16> p, std::size_t n,
                                  const AdamWCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

SIDESTREAM_VECTORIZED void update_and_copy(const Pointers<F32, F32> p, BF16* __restrict copy,
                                           std::size_t n, const AdamWCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) copy[i] = BF16(update_element(p, i, c));
}

SIDESTREAM_VECTORIZED void update_and_copy(const Pointers<BF16, F32> p, BF16* __restrict copy,
                                           std::size_t n, const AdamWCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) copy[i] = BF16(update_element(p, i, c));
}

SIDESTREAM_VECTORIZED void update_and_copy(const Pointers<F32, BF16> p, BF16* __restrict copy,
                                           std::size_t n, const AdamWCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) copy[i] = BF16(update_element(p, i, c));
}

SIDESTREAM_VECTORIZED void update_and_copy(const Pointers<BF16, BF16> p, BF16* __restrict copy,
                                           std::size_t n, const AdamWCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) copy[i] = BF16(update_element(p, i, c));
}

}  // namespace

template <typename Gradient, typename Moment, typename Low>
void adamw_update(const AdamWRange<Gradient, Moment, Low>& range, const AdamWCoefficients& c) {
  const std::size_t n = range.weights.size();
  require_length("gradients", n, range.gradients.size());
  require_length("first moments", n, range.first_moments.size());
  require_length("second moments", n, range.second_moments.size());
  const Pointers<Gradient, Moment> p{.weights = range.weights.data(),
                                     .gradients = range.gradients.data(),
                                     .first_moments = range.first_moments.data(),
                                     .second_moments = range.second_moments.data(),
                                     .rounding = range.rounding};
  if (range.low_precision.empty()) {
    update(p, n, c);
    return;
  }
  require_length("low-precision copy", n, range.low_precision.size());
  update_and_copy(p, range.low_precision.data(), n, c);
}

void AdamWConfig::validate() const {
  require_in_range("--beta1", beta1, {.low = 0, .high = 1, .high_end = End::kOpen});
  require_in_range("--beta2", beta2, {.low = 0, .high = 1, .high_end = End::kOpen});
  require_in_range("--eps", eps, {.low = kSmallestEps, .high = 1});
  require_in_range("--weight-decay", weight_decay, {.low = 0, .high = 1e3});
}

AdamWCoefficients AdamWCoefficients::make(const AdamWConfig& config, const AdamWStep& step) {
  if (step.step < 1) {
    throw core::Error("AdamW: steps count from 1, found step " + std::to_string(step.step));
  }
  const double bias_correction1 = 1.0 - std::pow(config.beta1, static_cast<double>(step.step));
  const double bias_correction2 = 1.0 - std::pow(config.beta2, static_cast<double>(step.step));
  return {.gradient_scale = static_cast<float>(step.gradient_scale),
          .decay = static_cast<float>(1.0 - step.lr * step.weight_decay),
          .one_minus_beta1 = static_cast<float>(1.0 - config.beta1),
          .beta2 = static_cast<float>(config.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - config.beta2),
          .step_size = static_cast<float>(step.lr / bias_correction1),
          .inverse_sqrt_bias_correction2 = static_cast<float>(1.0 / std::sqrt(bias_correction2)),
          .eps = static_cast<float>(config.eps)};
}

#define SIDESTREAM_ADAMW(Gradient, Moment, Low) \
  template void adamw_update(const AdamWRange<Gradient, Moment, Low>&, const AdamWCoefficients&)
SIDESTREAM_ADAMW(F32, F32, BF16);
SIDESTREAM_ADAMW(F32, BF16, BF16);
SIDESTREAM_ADAMW(BF16, F32, BF16);
SIDESTREAM_ADAMW(BF16, BF16, BF16);
SIDESTREAM_ADAMW(F16, F32, BF16);
SIDESTREAM_ADAMW(F16, BF16, BF16);
SIDESTREAM_ADAMW(F32, F32, F16);
SIDESTREAM_ADAMW(F32, BF16, F16);
SIDESTREAM_ADAMW(BF16, F32, F16);
SIDESTREAM_ADAMW(BF16, BF16, F16);
SIDESTREAM_ADAMW(F16, F32, F16);
SIDESTREAM_ADAMW(F16, BF16, F16);
#undef SIDESTREAM_ADAMW

}  // namespace sidestream::optim
