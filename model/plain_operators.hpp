// Each operator as LibTorch has it: the baseline, the oracle of the fused ones, and what runs on
// any device and dtype.
#pragma once

#include "model/operators.hpp"

namespace sidestream::model {

class PlainOperators : public Operators {
 public:
  torch::Tensor embed(const torch::Tensor& tokens_bt, const Embeddings& embeddings) override;
  torch::Tensor norm(const torch::Tensor& x_btc, const NormWeights& norm) override;
  NormedResidual add_norm(const torch::Tensor& residual_btc, const torch::Tensor& branch_btc,
                          const NormWeights& norm) override;
  torch::Tensor linear(const Operand& x, const LinearWeights& weights) override;
  torch::Tensor mlp(const Operand& x_btc, const LinearWeights& in, const LinearWeights& out,
                    MlpKeeps keeps) override;
  torch::Tensor attention(const torch::Tensor& qkv_bt3c, const AttentionOptions& options) override;
  torch::Tensor next_token_loss(const torch::Tensor& x_btc, const Embeddings& embeddings,
                                const torch::Tensor& targets_bt,
                                const LossOptions& options) override;
};

}  // namespace sidestream::model
