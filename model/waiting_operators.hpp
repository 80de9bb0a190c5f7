// Operators that first wait for the weights they are about to read: where weights of the last
// update are still on their way from other ranks while the forward begins.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "model/operators.hpp"

namespace sidestream::model {

// Called with a parameter before it is read; returns when it may be.
using WeightArrival = std::function<void(const torch::Tensor& weight)>;

class WaitingOperators final : public Operators {
 public:
  WaitingOperators(std::unique_ptr<Operators> operators, WeightArrival arrival)
      : operators_(std::move(operators)), arrival_(std::move(arrival)) {}

  void write_gradients_into(GradientMemory memory) override {
    operators_->write_gradients_into(std::move(memory));
  }
  torch::Tensor embed(const torch::Tensor& tokens_bt, const Embeddings& embeddings) override;
  torch::Tensor norm(const torch::Tensor& x_btc, const NormWeights& norm) override;
  NormedResidual add_norm(const torch::Tensor& residual_btc, const torch::Tensor& branch_btc,
                          const NormWeights& norm) override;
  torch::Tensor linear(const Operand& x, const LinearWeights& weights) override;
  torch::Tensor mlp(const Operand& x_btc, const LinearWeights& in, const LinearWeights& out,
                    MlpKeeps keeps) override;
  torch::Tensor attention(const torch::Tensor& qkv_bt3c, const AttentionOptions& options) override {
    return operators_->attention(qkv_bt3c, options);  // has no weights
  }
  torch::Tensor next_token_loss(const torch::Tensor& x_btc, const Embeddings& embeddings,
                                const torch::Tensor& targets_bt,
                                const LossOptions& options) override;

 private:
  void wait_for(const LinearWeights& weights) const;
  void wait_for(const NormWeights& weights) const;
  void wait_for(const Embeddings& weights) const;

  std::unique_ptr<Operators> operators_;
  WeightArrival arrival_;
};

}  // namespace sidestream::model
