// SGD with momentum over plain arrays, in one pass. Splitting, threads and bits: as in adamw.hpp.
#pragma once

#include <span>

#include "core/base/dtype.hpp"
#include "core/base/float16.hpp"
#include "core/optim/stochastic_rounding.hpp"

namespace sidestream::optim {

struct SgdConfig {
  double momentum = 0.9;
  double weight_decay = 0;

  // Throws ConfigError that names the flag, the range and the value.
  void validate() const;
};

// Formula of torch.optim.SGD (no dampening, no Nesterov): the decay is part of the gradient, unlike
// AdamW's.
//   g += weight_decay w;  b = momentum b + g;  w -= lr b
struct SgdCoefficients {
  float gradient_scale = 1;  // 1 / (R G), loss scale and clip factor in one number
  float lr = 0;
  float momentum = 0;
  float weight_decay = 0;
};

// All spans have the same length. momentum_buffer starts as zeros; it may be empty when momentum is
// 0, low_precision when no copy is wanted. A buffer in bfloat16 is kept as adamw.hpp keeps a first
// moment.
template <typename Gradient, typename Moment = float, typename Low = core::BFloat16>
struct SgdRange {
  std::span<float> weights;
  std::span<const Gradient> gradients;
  std::span<Moment> momentum_buffer = {};
  std::span<Low> low_precision = {};
  RoundingPlace rounding = {};
};

// Throws Error when lengths differ, or when momentum has no buffer. Spans must not overlap.
// Element types: as in adamw.hpp.
template <typename Gradient, typename Moment, typename Low>
void sgd_update(const SgdRange<Gradient, Moment, Low>& range, const SgdCoefficients& coefficients);

}  // namespace sidestream::optim
