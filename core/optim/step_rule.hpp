// What an update on a device goes by in one step and the host knows before: learning rate, bias
// corrections, clipping, draws. A value in device memory that kernels read, so that launches which
// were captured once (a CUDA graph) work with the numbers of the step in which they are replayed.
#pragma once

#include <type_traits>

#include "core/optim/elements.hpp"

namespace sidestream::optim {

struct StepRule {
  ClipRule clip;
  RoundingSource rounding;             // of moments in bfloat16
  AdamWCoefficients adamw_with_decay;  // their gradient_scale is not used, here and below
  AdamWCoefficients adamw_without_decay;
  SgdCoefficients sgd_with_decay;
  SgdCoefficients sgd_without_decay;
};
// It travels as an argument of a kernel.
static_assert(std::is_trivially_copyable_v<StepRule> && sizeof(StepRule) <= 1024);

}  // namespace sidestream::optim
