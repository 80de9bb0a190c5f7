#include "model/waiting_operators.hpp"

namespace sidestream::model {

using torch::Tensor;

void WaitingOperators::wait_for(const LinearWeights& weights) const {
  arrival_(weights.weight);
  arrival_(weights.bias);
}

void WaitingOperators::wait_for(const NormWeights& weights) const {
  arrival_(weights.weight_c);
  arrival_(weights.bias_c);
}

void WaitingOperators::wait_for(const Embeddings& weights) const {
  arrival_(weights.tokens_vc);
  if (weights.positions_pc.defined()) arrival_(weights.positions_pc);
}

Tensor WaitingOperators::embed(const Tensor& tokens_bt, const Embeddings& embeddings) {
  wait_for(embeddings);
  return operators_->embed(tokens_bt, embeddings);
}

Tensor WaitingOperators::norm(const Tensor& x_btc, const NormWeights& norm) {
  wait_for(norm);
  return operators_->norm(x_btc, norm);
}

NormedResidual WaitingOperators::add_norm(const Tensor& residual_btc, const Tensor& branch_btc,
                                          const NormWeights& norm) {
  wait_for(norm);
  return operators_->add_norm(residual_btc, branch_btc, norm);
}

Tensor WaitingOperators::linear(const Operand& x, const LinearWeights& weights) {
  wait_for(weights);
  return operators_->linear(x, weights);
}

Tensor WaitingOperators::mlp(const Operand& x_btc, const LinearWeights& in,
                             const LinearWeights& out, MlpKeeps keeps) {
  wait_for(in);
  wait_for(out);
  return operators_->mlp(x_btc, in, out, keeps);
}

Tensor WaitingOperators::next_token_loss(const Tensor& x_btc, const Embeddings& embeddings,
                                         const Tensor& targets_bt, const LossOptions& options) {
  wait_for(embeddings);
  return operators_->next_token_loss(x_btc, embeddings, targets_bt, options);
}

}  // namespace sidestream::model
