#include "model/device/device_operators.hpp"

#include "core/base/error.hpp"
#include "model/device/attention.hpp"
#include "model/device/embedding.hpp"
#include "model/device/head_loss.hpp"
#include "model/device/linear.hpp"
#include "model/device/mlp.hpp"
#include "model/device/norm.hpp"

namespace sidestream::model::device {

using torch::Tensor;

bool DeviceOperators::has_kernels(const Tensor& x) const {
  const at::ScalarType type = x.scalar_type();
  return x.device().type() == queue_->device && x.numel() > 0 &&
         (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

fused::GradientPlace DeviceOperators::place_of(const Tensor& weight) const {
  return fused::place_for(weight, gradients_);
}

Tensor DeviceOperators::embed(const Tensor& tokens_bt, const Embeddings& embeddings) {
  return has_kernels(embeddings.tokens_vc) && tokens_bt.numel() > 0
             ? device::embed(queue_, tokens_bt, embeddings)
             : plain_.embed(tokens_bt, embeddings);
}

Tensor DeviceOperators::norm(const Tensor& x_btc, const NormWeights& norm) {
  const bool fits = has_kernels(x_btc) && x_btc.size(-1) <= kWidestNorm;
  return fits ? device::norm(queue_, x_btc, norm) : plain_.norm(x_btc, norm);
}

NormedResidual DeviceOperators::add_norm(const Tensor& residual_btc, const Tensor& branch_btc,
                                         const NormWeights& norm) {
  const bool fits = has_kernels(residual_btc) && residual_btc.size(-1) <= kWidestNorm;
  return fits ? device::add_norm(queue_, residual_btc, branch_btc, norm)
              : plain_.add_norm(residual_btc, branch_btc, norm);
}

Tensor DeviceOperators::linear(const Operand& x, const LinearWeights& weights) {
  return has_kernels(x.value) ? device::linear(queue_, x, weights, place_of(weights.weight))
                              : plain_.linear(x, weights);
}

Tensor DeviceOperators::mlp(const Operand& x_btc, const LinearWeights& in, const LinearWeights& out,
                            MlpKeeps keeps) {
  if (!has_kernels(x_btc.value)) return plain_.mlp(x_btc, in, out, keeps);
  return device::mlp(
      queue_, x_btc, in, out,
      {.gradients = {.in_weight = place_of(in.weight), .out_weight = place_of(out.weight)},
       .keeps = keeps});
}

// LibTorch picks a kernel. Its inputs are views of the rows of qkv, and its output lies as [B, T,
// heads, C / heads], so that forward copies nothing; backward concatenates three gradients.
Tensor DeviceOperators::attention(const Tensor& qkv_bt3c, const AttentionOptions& options) {
  const bool packed =
      queue_->attention && has_kernels(qkv_bt3c) && PackedAttention::takes(qkv_bt3c, options);
  return packed ? device::attention(queue_, qkv_bt3c, options.heads)
                : plain_.attention(qkv_bt3c, options);
}

Tensor DeviceOperators::next_token_loss(const Tensor& x_btc, const Embeddings& embeddings,
                                        const Tensor& targets_bt, const LossOptions& options) {
  return has_kernels(x_btc) ? device::next_token_loss(queue_, x_btc, embeddings, targets_bt,
                                                      options, place_of(embeddings.tokens_vc))
                            : plain_.next_token_loss(x_btc, embeddings, targets_bt, options);
}

std::unique_ptr<Operators> make_device_operators(const ModelConfig& config) {
  LaunchQueuePtr queue = make_launch_queue();
  if (!queue) return std::make_unique<PlainOperators>();
  if (config.tune_products) {
    queue->products = make_products();
    if (!queue->products)
      throw core::Error("products of the fastest algorithm: this build has none");
  }
  if (config.packed_attention) {
    queue->attention = make_packed_attention();
    if (!queue->attention) throw core::Error("packed attention: this build has none");
  }
  return std::make_unique<DeviceOperators>(std::move(queue));
}

}  // namespace sidestream::model::device
