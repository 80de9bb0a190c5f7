// Causal attention whose operands lie side by side: a row of [B, T, 3 C] holds queries, keys and
// values of a token, and in backward their gradients, which nobody has to concatenate then.
//
// B batch, T time, H heads, C width, all of one 16-bit dtype but for sums of exponentials, and
// contiguous. Nothing waits for the device.
#pragma once

#include <memory>
#include <string>

#include <torch/types.h>

#include "model/operators.hpp"

namespace sidestream::model::device {

// Where the i-th of `parts` matrices begins that lie side by side in each row of a tensor [B, T,
// ...].
inline void* part_of(const torch::Tensor& packed, std::int64_t i, std::int64_t parts) {
  const auto bytes = static_cast<std::int64_t>(packed.element_size());
  return static_cast<char*>(packed.data_ptr()) + i * (packed.size(2) / parts) * bytes;
}

class PackedAttention {
 public:
  virtual ~PackedAttention() = default;

  // Whether it can be had: bfloat16 or float16, no dropout, at least two tokens, heads as
  // kPackedHeadWidth and kMostPackedHeadWidth say (config.hpp).
  static bool takes(const torch::Tensor& qkv_bt3c, const AttentionOptions& options);

  struct Sizes {
    at::ScalarType dtype;
    bool deterministic;  // of gradients
    std::int64_t batch, time, heads, head_width;
  };
  // Why the current device has no such attention, forward and backward; empty: it has.
  virtual std::string objection(const Sizes& sizes) const = 0;

  struct Forward {
    const torch::Tensor& qkv_bt3c;
    std::int64_t heads;
    const torch::Tensor& out_btc;
    const torch::Tensor& log_sums_bht;  // fp32: logarithms of what each row's softmax divides by
  };
  // out = softmax(queries keys^T / sqrt(C / H), causal) values, head by head.
  virtual void forward(const Forward& job) const = 0;

  struct Backward {
    const torch::Tensor& qkv_bt3c;
    std::int64_t heads;
    const torch::Tensor& out_btc;
    const torch::Tensor& log_sums_bht;
    const torch::Tensor& out_grad_btc;
    const torch::Tensor& qkv_grad_bt3c;  // written
  };
  virtual void backward(const Backward& job) const = 0;
};

// cuDNN's, on the current stream. Throws core::Error where cuDNN has no such attention. Null in a
// build without LibTorch's CUDA or without cuDNN's frontend.
std::shared_ptr<const PackedAttention> make_packed_attention();

}  // namespace sidestream::model::device
