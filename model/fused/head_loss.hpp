// The head and its cross-entropy: logits exist for one chunk of rows at a time, become their own
// gradient in place, and turn into the gradients of the hidden state and of the weight before the
// next chunk. The backward pass only hands those out.
#pragma once

#include <torch/types.h>

#include "model/fused/gradient_place.hpp"
#include "model/operators.hpp"

namespace sidestream::model::fused {

// x_btc contiguous, C even; float or bfloat16. The loss is a scalar in fp32. With embeddings.tied
// the weight's gradient waits there for the embedding's backward. The mean is over the targets that
// count (kIgnoredTarget). Throws DataError naming another target outside the vocabulary.
torch::Tensor next_token_loss(const torch::Tensor& x_btc, const Embeddings& embeddings,
                              const torch::Tensor& targets_bt, const LossOptions& options,
                              const GradientPlace& weight_gradient = {});

}  // namespace sidestream::model::fused
