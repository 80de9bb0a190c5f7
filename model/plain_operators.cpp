#include "model/plain_operators.hpp"

namespace sidestream::model {

using torch::Tensor;

Tensor PlainOperators::embed(const Tensor& tokens_bt, const Embeddings& embeddings) {
  Tensor x_btc = at::embedding(embeddings.tokens_vc, tokens_bt);
  if (!embeddings.positions_pc.defined()) return x_btc;
  return x_btc + embeddings.positions_pc.narrow(0, 0, tokens_bt.size(1));
}

Tensor PlainOperators::norm(const Tensor& x_btc, const NormWeights& norm) {
  return at::layer_norm(x_btc, {x_btc.size(-1)}, norm.weight_c, norm.bias_c, kNormEps);
}

NormedResidual PlainOperators::add_norm(const Tensor& residual_btc, const Tensor& branch_btc,
                                        const NormWeights& weights) {
  Tensor sum_btc = residual_btc + branch_btc;
  return {.residual_btc = sum_btc, .normed_btc = norm(sum_btc, weights)};
}

Tensor PlainOperators::linear(const Tensor& x, const LinearWeights& weights) {
  const std::int64_t in = weights.weight.size(0), out = weights.weight.size(1);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = out;
  return at::addmm(weights.bias, x.reshape({-1, in}), weights.weight).view(shape);
}

Tensor PlainOperators::mlp(const Tensor& x_btc, const LinearWeights& in, const LinearWeights& out) {
  return linear(at::gelu(linear(x_btc, in), "tanh"), out);
}

Tensor PlainOperators::attention(const Tensor& qkv_bt3c, const AttentionOptions& options) {
  const std::int64_t batch = qkv_bt3c.size(0), time = qkv_bt3c.size(1),
                     width = qkv_bt3c.size(2) / 3;
  const auto heads_first = [&](const Tensor& x_btc) {
    return x_btc.view({batch, time, options.heads, width / options.heads}).transpose(1, 2);
  };
  const std::vector<Tensor> parts = qkv_bt3c.split(width, 2);
  const Tensor out =
      at::scaled_dot_product_attention(heads_first(parts[0]), heads_first(parts[1]),
                                       heads_first(parts[2]), {}, options.dropout, true);
  return out.transpose(1, 2).reshape({batch, time, width});
}

Tensor PlainOperators::next_token_loss(const Tensor& x_btc, const Embeddings& embeddings,
                                       const Tensor& targets_bt, const LossOptions& options) {
  // The padded columns take part in the products, which are what the padding is for, and in nothing
  // else.
  const Tensor logits_nv = at::mm(x_btc.reshape({-1, x_btc.size(-1)}), embeddings.tokens_vc.t())
                               .narrow(1, 0, options.vocab_size);
  const bool wide = logits_nv.scalar_type() == at::kDouble;
  return at::cross_entropy_loss(wide ? logits_nv : logits_nv.to(at::kFloat),
                                targets_bt.reshape(-1));
}

}  // namespace sidestream::model
