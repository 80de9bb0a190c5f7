// Token and position embedding in one pass; the backward adds its rows to what the tied head has
// found already.
#pragma once

#include <torch/types.h>

#include "model/operators.hpp"

namespace sidestream::model::fused {

// tokens_bt int64 -> [B, T, C]. Throws Error naming an id outside the embedding.
torch::Tensor embed(const torch::Tensor& tokens_bt, const Embeddings& embeddings);

}  // namespace sidestream::model::fused
