// Fused CPU operators in fp32 and bf16; other dtypes, devices and shapes go to operators that know
// them.
#pragma once

#include <memory>
#include <utility>

#include "model/fused/gradient_place.hpp"
#include "model/plain_operators.hpp"

namespace sidestream::model::fused {

class FusedOperators : public Operators {
 public:
  // elsewhere: what runs where these do not.
  explicit FusedOperators(std::unique_ptr<Operators> elsewhere = std::make_unique<PlainOperators>())
      : elsewhere_(std::move(elsewhere)) {}

  void write_gradients_into(GradientMemory memory) override {
    elsewhere_->write_gradients_into(memory);
    gradients_ = std::move(memory);
  }
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

 private:
  bool has_kernels(const torch::Tensor& x) const;
  GradientPlace place_of(const torch::Tensor& weight) const;

  std::unique_ptr<Operators> elsewhere_;
  GradientMemory gradients_;
};

}  // namespace sidestream::model::fused
