#include "model/head.hpp"

#include <c10/util/StringUtil.h>

#include "core/base/error.hpp"

namespace sidestream::model {

void check_inputs(const torch::Tensor& inputs_bt, const ModelConfig& config) {
  const bool shaped =
      inputs_bt.dim() == 2 && inputs_bt.scalar_type() == at::kLong && inputs_bt.numel() > 0;
  if (!shaped) {
    throw core::Error(c10::str("model: expected token ids as int64 [B, T], found ",
                               inputs_bt.scalar_type(), " ", inputs_bt.sizes()));
  }
  if (inputs_bt.size(1) <= config.context_length) return;
  throw core::ConfigError(c10::str("model: a sequence of ", inputs_bt.size(1),
                                   " tokens is longer than context_length ",
                                   config.context_length));
}

torch::Tensor last_position_logits(const torch::Tensor& hidden_btc, const torch::Tensor& tokens_vc,
                                   std::int64_t vocab_size) {
  const torch::Tensor last_bc = hidden_btc.select(1, hidden_btc.size(1) - 1);
  return at::mm(last_bc, tokens_vc.narrow(0, 0, vocab_size).t()).to(at::kFloat);
}

}  // namespace sidestream::model
