#include "model/fused/fused_operators.hpp"

#include "model/fused/attention.hpp"
#include "model/fused/block_product.hpp"
#include "model/fused/embedding.hpp"
#include "model/fused/head_loss.hpp"
#include "model/fused/linear.hpp"
#include "model/fused/linear_products.hpp"
#include "model/fused/mlp.hpp"
#include "model/fused/norm.hpp"

namespace sidestream::model::fused {

using torch::Tensor;

namespace {

LinearWeights widened(const LinearWeights& weights) {
  return {.weight = weights.weight.to(at::kFloat), .bias = weights.bias.to(at::kFloat)};
}

// Its head returns its gradient apart: the place of a tied one is of the narrow type.
Embeddings widened(const Embeddings& embeddings) {
  return {.tokens_vc = embeddings.tokens_vc.to(at::kFloat), .positions_pc = {}, .tied = {}};
}

}  // namespace

FusedOperators::FusedOperators()
    : FusedOperators(
          {.fp32 = products_supported(at::kFloat), .bf16 = products_supported(at::kBFloat16)}) {}

bool FusedOperators::has_kernels(const Tensor& x) const {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

bool FusedOperators::has_products(const Tensor& x) const {
  return x.is_cpu() && ((x.scalar_type() == at::kFloat && products_.fp32) ||
                        (x.scalar_type() == at::kBFloat16 && products_.bf16));
}

bool FusedOperators::is_widened(const Tensor& x) const {
  return x.is_cpu() && x.scalar_type() == at::kBFloat16 && !products_.bf16;
}

Tensor FusedOperators::embed(const Tensor& tokens_bt, const Embeddings& embeddings) {
  if (!has_kernels(embeddings.tokens_vc)) return plain_.embed(tokens_bt, embeddings);
  return fused::embed(tokens_bt, embeddings);
}

Tensor FusedOperators::norm(const Tensor& x_btc, const NormWeights& norm) {
  return has_kernels(x_btc) ? fused::norm(x_btc, norm) : plain_.norm(x_btc, norm);
}

NormedResidual FusedOperators::add_norm(const Tensor& residual_btc, const Tensor& branch_btc,
                                        const NormWeights& norm) {
  if (!has_kernels(residual_btc)) return plain_.add_norm(residual_btc, branch_btc, norm);
  return fused::add_norm(residual_btc, branch_btc, norm);
}

Tensor FusedOperators::linear(const Tensor& x, const LinearWeights& weights) {
  if (is_widened(x)) return linear(x.to(at::kFloat), widened(weights)).to(at::kBFloat16);
  const bool fits = contractible(weights.weight.size(0)) && contractible(weights.weight.size(1));
  return has_products(x) && fits ? fused::linear(x, weights) : plain_.linear(x, weights);
}

Tensor FusedOperators::mlp(const Tensor& x_btc, const LinearWeights& in, const LinearWeights& out) {
  if (is_widened(x_btc))
    return mlp(x_btc.to(at::kFloat), widened(in), widened(out)).to(at::kBFloat16);
  const bool fits = contractible(in.weight.size(0)) && contractible(in.weight.size(1));
  return has_products(x_btc) && fits ? fused::mlp(x_btc, in, out) : plain_.mlp(x_btc, in, out);
}

Tensor FusedOperators::attention(const Tensor& qkv_bt3c, const AttentionOptions& options) {
  if (is_widened(qkv_bt3c)) return attention(qkv_bt3c.to(at::kFloat), options).to(at::kBFloat16);
  const bool fits = contractible(qkv_bt3c.size(2) / 3 / options.heads) && options.dropout == 0;
  return has_products(qkv_bt3c) && fits ? fused::attention(qkv_bt3c, options.heads)
                                        : plain_.attention(qkv_bt3c, options);
}

Tensor FusedOperators::next_token_loss(const Tensor& x_btc, const Embeddings& embeddings,
                                       const Tensor& targets_bt, const LossOptions& options) {
  if (is_widened(x_btc))
    return next_token_loss(x_btc.to(at::kFloat), widened(embeddings), targets_bt, options);
  if (!has_products(x_btc) || !contractible(x_btc.size(-1))) {
    return plain_.next_token_loss(x_btc, embeddings, targets_bt, options);
  }
  return fused::next_token_loss(x_btc, embeddings, targets_bt, options);
}

}  // namespace sidestream::model::fused
