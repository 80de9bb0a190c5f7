// linear, GELU, linear in one: between forward and backward only the input and what goes into the
// GELU are kept, or the input alone; the activation is computed again while its gradient passes
// through the cache.
#pragma once

#include <torch/types.h>

#include "model/fused/gradient_place.hpp"
#include "model/operators.hpp"

namespace sidestream::model::fused {

struct MlpGradients {
  GradientPlace in_weight, out_weight;
};

struct MlpOptions {
  MlpGradients gradients = {};
  MlpKeeps keeps = MlpKeeps::kBeforeGelu;  // kAll means no more
};

// x [..., C] contiguous; weights [C, H] and [H, C], C and H even; float or bfloat16.
torch::Tensor mlp(const Operand& x, const LinearWeights& in, const LinearWeights& out,
                  const MlpOptions& options = {});

}  // namespace sidestream::model::fused
