#include "model/plain_operators.hpp"

#include "model/chunked_loss.hpp"
#include "model/loss_chunks.hpp"
#include "model/plain_mlp.hpp"

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

Tensor PlainOperators::linear(const Operand& x, const LinearWeights& weights) {
  return x.again.make ? plain::linear_made_again(x, weights) : plain::linear(x.value, weights);
}

Tensor PlainOperators::mlp(const Operand& x_btc, const LinearWeights& in, const LinearWeights& out,
                           MlpKeeps keeps) {
  if (keeps != MlpKeeps::kAll) return plain::mlp_made_again(x_btc, in, out, keeps);
  return plain::linear(at::gelu(linear(x_btc, in), "tanh"), out);
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
  const Tensor x_nc = x_btc.reshape({-1, x_btc.size(-1)}), targets_n = targets_bt.reshape(-1);
  const Tensor& weight_vc = embeddings.tokens_vc;
  const bool wide = x_nc.scalar_type() == at::kDouble;
  const std::int64_t rows =
      rows_of_loss_chunk({.rows = x_nc.size(0),
                          .bytes_per_row = weight_vc.size(0) * (wide ? 8 : 4),
                          .chunk_bytes = x_nc.is_cpu() ? kLossChunkBytes : kDeviceLossChunkBytes},
                         options.chunks);
  if (rows < x_nc.size(0))
    return plain::chunked_loss(x_nc, weight_vc, targets_n, options.vocab_size, rows, options.scale);
  const Tensor logits_nv = at::mm(x_nc, weight_vc.t()).narrow(1, 0, options.vocab_size);
  return at::cross_entropy_loss(wide ? logits_nv : logits_nv.to(at::kFloat), targets_n);
}

}  // namespace sidestream::model
