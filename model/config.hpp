// Sizes of a model, presets by name, and the counts that follow from them. No LibTorch in this
// header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sidestream::model {

// NVTX ranges by parameter path around the forward of every layer.
enum class LayerRanges { kOff, kOn };

enum class FusedOps {
  kOff,  // plain LibTorch operators, scaled_dot_product_attention included
  kOn,
};

// Channels of a head with packed_attention: a multiple of the first, the second at most (of
// attention's backward in cuDNN, on every GPU that has it).
constexpr std::int64_t kPackedHeadWidth = 8, kMostPackedHeadWidth = 128;
constexpr bool fits_packed_attention(std::int64_t head_width) {
  return head_width % kPackedHeadWidth == 0 && head_width <= kMostPackedHeadWidth;
}

// What blocks do not keep between forward and backward, but compute again. Each level has what
// those before it have. Losses and gradients do not depend on it, bit for bit.
enum class Recompute {
  kNone,
  kActivations,  // outputs of norms and GELU
  kMlp,          // what lies inside the MLP
  kAttention,    // queries, keys, values and what attention makes of them
  kBlocks,       // everything but each block's input
};

// Where the inputs of blocks, which are all that Recompute::kBlocks keeps, lie from forward to
// backward.
enum class ResidualPlace {
  kDevice,
  kHost,  // of a GPU: in memory of its host, but for those of the first and the last block
};

struct ModelConfig {
  std::string family = "gpt2";  // gpt2 | mlp
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t vocab_size = 50257;
  std::int64_t padded_vocab_size =
      50257;  // rows of the embedding; those past vocab_size are zero and never predicted
  std::int64_t context_length = 1024;  // rows of the position embedding
  double dropout = 0.0;
  FusedOps fused_ops = FusedOps::kOn;
  bool packed_attention = false;  // with fused_ops, on a GPU, in 16 bits: PackedAttention
  bool tune_products = false;     // likewise: products of the fastest algorithm, by timing
  LayerRanges layer_ranges = LayerRanges::kOff;
  std::int64_t loss_chunks =
      0;  // the head's logits are computed in so many parts; 0: chosen by size
  Recompute recompute = Recompute::kNone;
  ResidualPlace residuals = ResidualPlace::kDevice;

  // Throws ConfigError naming the field, the range and the value, or what exclude each other.
  void validate() const;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// gpt2-124m, gpt2-355m, gpt2-774m, gpt2-1558m (published sizes), gpt2-mini (about 11M), gpt2-tiny,
// gpt2-micro (tests), mlp. Throws ConfigError listing the names.
ModelConfig preset(const std::string& name);
std::vector<std::string> preset_names();

// Why packed_attention cannot be had for such a model; empty: it can.
std::string objection_to_packed_attention(const ModelConfig& config);

// Blocks whose input goes to the host with ResidualPlace::kHost: all but the first and the last.
std::int64_t offloaded_blocks(const ModelConfig& config);

// Number of parameters without padding rows: 124,439,808 for gpt2-124m.
std::int64_t parameter_count(const ModelConfig& config);

// FLOPs of forward and backward per token: 6 N + 6 L C T (causal attention counted as what has to
// be computed), and with 12 L C T as in PaLM, appendix B.
struct FlopsPerToken {
  double causal = 0;
  double palm = 0;
};
FlopsPerToken flops_per_token(const ModelConfig& config, std::int64_t sequence_length);

}  // namespace sidestream::model
