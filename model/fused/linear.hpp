// x weight + bias, the bias added while a block of the product is in the cache.
#pragma once

#include <torch/types.h>

#include "model/fused/gradient_place.hpp"
#include "model/operators.hpp"

namespace sidestream::model::fused {

// x [..., in] contiguous, in and out even; float or bfloat16.
torch::Tensor linear(const Operand& x, const LinearWeights& weights,
                     const GradientPlace& weight_gradient = {});

}  // namespace sidestream::model::fused
