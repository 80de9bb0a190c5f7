// Operators on a GPU, in fp32, bf16 and fp16: products and attention are LibTorch's (or
// cublasLt's and cuDNN's own, as ModelConfig asks), what lies between them is a kernel each. Other
// dtypes, devices and widths go to the plain operators.
//
// Nothing here waits for the device or reads from it, but to time algorithms at the first product
// of a size, so that a step can be captured as a CUDA graph. What cannot be checked without waiting
// is not: a token or a target outside the vocabulary makes the loss NaN.
#pragma once

#include <memory>
#include <utility>

#include "model/device/launch_queue.hpp"
#include "model/fused/gradient_place.hpp"
#include "model/plain_operators.hpp"

namespace sidestream::model::device {

class DeviceOperators : public Operators {
 public:
  explicit DeviceOperators(LaunchQueuePtr queue) : queue_(std::move(queue)) {}

  void write_gradients_into(GradientMemory memory) override { gradients_ = std::move(memory); }
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
  fused::GradientPlace place_of(const torch::Tensor& weight) const;

  LaunchQueuePtr queue_;
  PlainOperators plain_;
  GradientMemory gradients_;
};

// Plain operators in a build without CUDA. config.fused_ops: not kOff.
std::unique_ptr<Operators> make_device_operators(const ModelConfig& config);

}  // namespace sidestream::model::device
