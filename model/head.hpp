// What every language model does at its two ends: checks its input, predicts from the last
// position.
#pragma once

#include <torch/types.h>

#include "model/config.hpp"
#include "model/modules.hpp"
#include "model/operators.hpp"

namespace sidestream::model {

// Throws Error unless inputs_bt is int64 [B, T] with 1 <= T <= context_length.
void check_inputs(const torch::Tensor& inputs_bt, const ModelConfig& config);

// fp32 [B, vocab_size] of the last position.
torch::Tensor last_position_logits(const torch::Tensor& hidden_btc, const torch::Tensor& tokens_vc,
                                   std::int64_t vocab_size);

inline LinearWeights weights_of(const Linear& linear) {
  return {.weight = linear.weight, .bias = linear.bias};
}
inline NormWeights weights_of(const LayerNorm& norm) {
  return {.weight_c = norm.weight, .bias_c = norm.bias};
}

}  // namespace sidestream::model
