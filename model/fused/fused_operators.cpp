#include "model/fused/fused_operators.hpp"

#include "model/fused/attention.hpp"
#include "model/fused/embedding.hpp"
#include "model/fused/head_loss.hpp"
#include "model/fused/linear.hpp"
#include "model/fused/linear_products.hpp"
#include "model/fused/mlp.hpp"
#include "model/fused/norm.hpp"

namespace sidestream::model::fused {

using torch::Tensor;

bool FusedOperators::has_kernels(const Tensor& x) const {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

GradientPlace FusedOperators::place_of(const Tensor& weight) const {
  return place_for(weight, gradients_);
}

Tensor FusedOperators::embed(const Tensor& tokens_bt, const Embeddings& embeddings) {
  if (!has_kernels(embeddings.tokens_vc)) return elsewhere_->embed(tokens_bt, embeddings);
  return fused::embed(tokens_bt, embeddings);
}

Tensor FusedOperators::norm(const Tensor& x_btc, const NormWeights& norm) {
  return has_kernels(x_btc) ? fused::norm(x_btc, norm) : elsewhere_->norm(x_btc, norm);
}

NormedResidual FusedOperators::add_norm(const Tensor& residual_btc, const Tensor& branch_btc,
                                        const NormWeights& norm) {
  if (!has_kernels(residual_btc)) return elsewhere_->add_norm(residual_btc, branch_btc, norm);
  return fused::add_norm(residual_btc, branch_btc, norm);
}

Tensor FusedOperators::linear(const Operand& x, const LinearWeights& weights) {
  const bool fits = contractible(weights.weight.size(0)) && contractible(weights.weight.size(1));
  if (!has_kernels(x.value) || !fits) return elsewhere_->linear(x, weights);
  return fused::linear(x, weights, place_of(weights.weight));
}

Tensor FusedOperators::mlp(const Operand& x_btc, const LinearWeights& in, const LinearWeights& out,
                           MlpKeeps keeps) {
  const bool fits = contractible(in.weight.size(0)) && contractible(in.weight.size(1));
  if (!has_kernels(x_btc.value) || !fits) return elsewhere_->mlp(x_btc, in, out, keeps);
  return fused::mlp(
      x_btc, in, out,
      {.gradients = {.in_weight = place_of(in.weight), .out_weight = place_of(out.weight)},
       .keeps = keeps});
}

Tensor FusedOperators::attention(const Tensor& qkv_bt3c, const AttentionOptions& options) {
  const bool fits = contractible(qkv_bt3c.size(2) / 3 / options.heads) && options.dropout == 0;
  return has_kernels(qkv_bt3c) && fits ? fused::attention(qkv_bt3c, options.heads)
                                       : elsewhere_->attention(qkv_bt3c, options);
}

Tensor FusedOperators::next_token_loss(const Tensor& x_btc, const Embeddings& embeddings,
                                       const Tensor& targets_bt, const LossOptions& options) {
  if (!has_kernels(x_btc) || !contractible(x_btc.size(-1))) {
    return elsewhere_->next_token_loss(x_btc, embeddings, targets_bt, options);
  }
  return fused::next_token_loss(x_btc, embeddings, targets_bt, options,
                                place_of(embeddings.tokens_vc));
}

}  // namespace sidestream::model::fused
