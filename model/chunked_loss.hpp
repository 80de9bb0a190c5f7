// Tied head and cross-entropy of LibTorch's operators, some rows at a time, so that logits are
// never there as a whole (as in LLM.Q and Liger Kernel). Any device and dtype.
//
// Where gradients are wanted, those of a chunk are computed right behind its loss, while its logits
// are there, for a gradient of the loss of `scale`; backward multiplies by what is missing.
#pragma once

#include <torch/types.h>

#include "model/operators.hpp"

namespace sidestream::model::plain {

// x_nc [N, C], weight_vc [V, C], targets_n int64 [N]; `rows` logits of each at a time, at least 1.
// Mean over the targets in fp32 (double for double), as at::cross_entropy_loss has it: targets of
// -100 do not count. Columns from vocab_size on are masked out. scale: as LossOptions::scale.
torch::Tensor chunked_loss(const torch::Tensor& x_nc, const torch::Tensor& weight_vc,
                           const torch::Tensor& targets_n, std::int64_t vocab_size,
                           std::int64_t rows, const torch::Tensor& scale = {});

}  // namespace sidestream::model::plain
