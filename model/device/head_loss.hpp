// The head and its cross-entropy on a device: logits exist for one chunk of rows at a time, become
// their own gradient in place, and turn into the gradients of the hidden state and of the weight
// before the next chunk. The backward pass only hands those out.
#pragma once

#include <torch/types.h>

#include "model/device/launch_queue.hpp"
#include "model/fused/gradient_place.hpp"
#include "model/operators.hpp"

namespace sidestream::model::device {

// x_btc and the embedding: float, bfloat16 or float16; the embedding [V, C] contiguous. The loss is
// a scalar in fp32, the mean over the targets that count (kIgnoredTarget), and NaN where another
// one is outside the vocabulary. options.chunks: rows_of_loss_chunk(). Can be differentiated once.
// With embeddings.tied the weight's gradient waits there for the embedding's backward, else it is
// this one's. weight_gradient: where it is written.
torch::Tensor next_token_loss(const LaunchQueuePtr& queue, const torch::Tensor& x_btc,
                              const Embeddings& embeddings, const torch::Tensor& targets_bt,
                              const LossOptions& options,
                              const fused::GradientPlace& weight_gradient);

}  // namespace sidestream::model::device
