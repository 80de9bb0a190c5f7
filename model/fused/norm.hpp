// Layer norm, alone or after a residual addition, in one pass over the rows each way.
#pragma once

#include <torch/types.h>

#include "model/operators.hpp"

namespace sidestream::model::fused {

// x [..., C] contiguous; float or bfloat16.
torch::Tensor norm(const torch::Tensor& x, const NormWeights& weights);
NormedResidual add_norm(const torch::Tensor& residual, const torch::Tensor& branch,
                        const NormWeights& weights);

}  // namespace sidestream::model::fused
