// The head and its cross-entropy on a device: logits exist for one chunk of rows at a time, become
// their own gradient in place, and turn into the gradients of the hidden state and of the weight
// before the next chunk. The backward pass only hands those out.
#pragma once

#include <torch/torch.h>

#include "model/device/launch_queue.hpp"
#include "model/operators.hpp"

namespace sidestream::model::device {

// x_btc and weight_vc: float, bfloat16 or float16; weight_vc [V, C] contiguous. The loss is a
// scalar in fp32, the mean over the targets that count (kIgnoredTarget), and NaN where another one
// is outside the vocabulary. options.chunks: rows_of_loss_chunk(). Can be differentiated once.
torch::Tensor next_token_loss(const LaunchQueuePtr& queue, const torch::Tensor& x_btc,
                              const torch::Tensor& weight_vc, const torch::Tensor& targets_bt,
                              const LossOptions& options);

}  // namespace sidestream::model::device
