// The operators that language models are made of, each differentiable: one strategy with plain
// LibTorch operators, one with fused kernels for the processor, one with kernels for a GPU. Models
// never ask which one they have.
//
// Shapes: B batch, T time, C width, V vocabulary rows (padding included). Floating tensors share
// one dtype.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "model/config.hpp"
#include "model/gradient_memory.hpp"
#include "model/operand.hpp"

namespace sidestream::model {

// The part of a tied weight's gradient that the head has found, on its way to the embedding's
// backward, which comes later and adds its rows in place. One per forward pass.
struct TiedGradient : torch::CustomClassHolder {
  bool is_awaited = false;  // by an embedding whose weight is differentiated
  torch::Tensor from_head;
};

struct Embeddings {
  torch::Tensor tokens_vc;
  torch::Tensor positions_pc;             // undefined: no positions
  c10::intrusive_ptr<TiedGradient> tied;  // null: head and embedding return their gradients apart
};

struct LinearWeights {
  torch::Tensor weight;  // [in, out]
  torch::Tensor bias;    // [out]
};

struct NormWeights {
  torch::Tensor weight_c, bias_c;
};

struct NormedResidual {
  torch::Tensor residual_btc;  // the sum
  torch::Tensor normed_btc;    // its layer norm
};

struct AttentionOptions {
  std::int64_t heads = 1;
  double dropout = 0;  // of the probabilities
};

struct LossOptions {
  std::int64_t vocab_size = 0;  // columns from here on are padding: masked out
  // Parts in which logits are computed, forward and backward (rows_of_loss_chunk); 0: chosen by
  // size, 1: all at once.
  std::int64_t chunks = 0;
  // fp32 scalar, where gradients are computed with the loss: what the loss's own gradient will be,
  // so that those in fp16 do not become zero before it comes. Undefined: one. Any other gradient of
  // the loss is right all the same, and the loss does not depend on it.
  torch::Tensor scale = {};
};

// What mlp() keeps for its backward; the rest is made again there, without the second product.
enum class MlpKeeps {
  kAll,         // whatever its backward reads
  kBeforeGelu,  // its input and what goes into the GELU
  kInput,       // its input
};

constexpr double kNormEps = 1e-5;

class Operators {
 public:
  virtual ~Operators() = default;

  // The gradients of large weights, from the next forward on. LibTorch's operators cannot.
  virtual void write_gradients_into(GradientMemory /*memory*/) {}

  // tokens_bt int64 -> [B, T, C]. Throws Error for an id outside the embedding; on a device, where
  // nobody waits to see it, its row is NaN, or the device refuses to go on.
  virtual torch::Tensor embed(const torch::Tensor& tokens_bt, const Embeddings& embeddings) = 0;

  // Layer norm over the last dimension.
  virtual torch::Tensor norm(const torch::Tensor& x_btc, const NormWeights& norm) = 0;

  // residual + branch, and its layer norm.
  virtual NormedResidual add_norm(const torch::Tensor& residual_btc,
                                  const torch::Tensor& branch_btc, const NormWeights& norm) = 0;

  virtual torch::Tensor linear(const Operand& x, const LinearWeights& weights) = 0;

  // linear, GELU (tanh form), linear.
  virtual torch::Tensor mlp(const Operand& x_btc, const LinearWeights& in, const LinearWeights& out,
                            MlpKeeps keeps) = 0;

  // Causal self-attention; qkv_bt3c holds queries, keys and values, each [heads, C / heads] -> [B,
  // T, C].
  virtual torch::Tensor attention(const torch::Tensor& qkv_bt3c,
                                  const AttentionOptions& options) = 0;

  // Mean cross-entropy in fp32 of softmax(x tokens^T) against targets_bt; the head is tied to the
  // embedding. Targets of kIgnoredTarget (ignored_target.hpp) do not count. Fused, or in more
  // than one chunk, it can be differentiated once. Throws Error for another target outside the
  // vocabulary; on a device, where nobody waits to see it, the loss is NaN, or the device refuses
  // to go on.
  virtual torch::Tensor next_token_loss(const torch::Tensor& x_btc, const Embeddings& embeddings,
                                        const torch::Tensor& targets_bt,
                                        const LossOptions& options) = 0;
};

// As config.fused_ops, packed_attention and tune_products say.
std::unique_ptr<Operators> make_operators(const ModelConfig& config);

}  // namespace sidestream::model
