// linear, GELU, linear in one: between forward and backward only the input and what goes into the
// GELU are kept; the activation is computed again while its gradient passes through the cache.
#pragma once

#include <torch/torch.h>

#include "model/fused/gradient_place.hpp"
#include "model/operators.hpp"

namespace sidestream::model::fused {

struct MlpGradients {
  GradientPlace in_weight, out_weight;
};

// x [..., C] contiguous; weights [C, H] and [H, C], C and H even; float or bfloat16.
torch::Tensor mlp(const torch::Tensor& x, const LinearWeights& in, const LinearWeights& out,
                  const MlpGradients& gradients = {});

}  // namespace sidestream::model::fused
