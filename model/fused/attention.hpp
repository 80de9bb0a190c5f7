// Causal self-attention that reads queries, keys and values where the linear layer left them and
// writes their gradient in the same layout.
//
// Per head, a block of queries sees all its keys at once, so that softmax is done on whole rows;
// blocks behind the causal mask are skipped. Only the log of each row's sum is kept: the backward
// pass computes probabilities again, on transposed scores, because then two of its three products
// need no transposition of a T x T matrix.
#pragma once

#include <torch/types.h>

namespace sidestream::model::fused {

// qkv_bt3c [B, T, 3C] contiguous -> [B, T, C]; C / heads even; float or bfloat16.
torch::Tensor attention(const torch::Tensor& qkv_bt3c, std::int64_t heads);

}  // namespace sidestream::model::fused
