#include "model/activation_memory.hpp"

#include <algorithm>

#include "model/loss_chunks.hpp"

// Counts are of elements for each token unless they say bytes; C is the width, 4 C that of the MLP.
namespace sidestream::model {
namespace {

constexpr std::int64_t kFloatBytes = 4;

// The processor's fused products need an even depth (FusedOperators).
bool runs_fused(const ModelConfig& config, const StepShape& shape) {
  const bool fits = !shape.on_cpu || config.width % 2 == 0;
  return config.fused_ops != FusedOps::kOff && shape.element_bytes <= kFloatBytes && fits;
}

bool has_attention(const ModelConfig& config) { return config.family != "mlp"; }

// Bytes of a token that attention keeps: queries, keys, values, its result and the log of each
// row's sum. LibTorch has no kernel for dropout on the processor: scaled queries and keys, and
// three matrices of T x T of each head, all in fp32.
std::int64_t attention_bytes(const ModelConfig& config, const StepShape& shape) {
  const std::int64_t width = config.width;
  const std::int64_t kept = 4 * width * shape.element_bytes + config.heads * kFloatBytes;
  if (config.dropout == 0 || !shape.on_cpu) return kept;
  return kept + (3 * config.heads * shape.sequence_length + 4 * width) * kFloatBytes;
}

// What comes out of the GELU is computed again by the fused operators of the processor, whose
// memory is slower than its GELU.
bool keeps_activation(const ModelConfig& config, const StepShape& shape) {
  return !(runs_fused(config, shape) && shape.on_cpu);
}

// What goes into the GELU, and what comes out of it.
std::int64_t mlp_elements(const ModelConfig& config, const StepShape& shape) {
  return (keeps_activation(config, shape) ? 8 : 4) * config.width;
}

// Bytes of a token that one block keeps where it keeps everything but its input.
std::int64_t whole_block_bytes(const ModelConfig& config, const StepShape& shape) {
  const std::int64_t e = shape.element_bytes, width = config.width;
  const std::int64_t masks = config.dropout > 0 ? 2 * width : 0;
  const std::int64_t norms = (has_attention(config) ? 3 : 1) * width;  // two outputs, one sum
  const std::int64_t attention = has_attention(config) ? attention_bytes(config, shape) : 0;
  return (norms + masks + mlp_elements(config, shape)) * e + attention;
}

// Bytes of a token that one block keeps at its level, beside its input.
std::int64_t kept_block_bytes(const ModelConfig& config, const StepShape& shape) {
  const std::int64_t e = shape.element_bytes, width = config.width;
  std::int64_t bytes = whole_block_bytes(config, shape);
  const std::int64_t mask = config.dropout > 0 ? width * e : 0;
  switch (config.recompute) {
    case Recompute::kNone:
      return bytes;
    case Recompute::kActivations:
      bytes -= 2 * width * e;
      return keeps_activation(config, shape) ? bytes - 4 * width * e : bytes;
    case Recompute::kMlp:
      return bytes - (2 * width + mlp_elements(config, shape)) * e;
    case Recompute::kAttention:
      return bytes - (2 * width + mlp_elements(config, shape)) * e -
             attention_bytes(config, shape) - mask;
    case Recompute::kBlocks:
      return 0;
  }
  return bytes;
}

// Gradients in attention's backward: of what goes in and comes out, and, where LibTorch's operators
// do it, of a matrix of T x T of each head.
std::int64_t attention_gradient_bytes(const ModelConfig& config, const StepShape& shape) {
  if (!has_attention(config)) return 0;
  const bool has_scores = config.dropout > 0 && shape.on_cpu;
  return 5 * config.width * shape.element_bytes +
         (has_scores ? config.heads * shape.sequence_length * kFloatBytes : 0);
}

// Gradients in the MLP's backward: of its output, of the residual stream, of both sides of the
// GELU, of its input. LibTorch's operators on the processor have let go of what comes out of the
// GELU by then.
std::int64_t mlp_gradient_bytes(const ModelConfig& config, const StepShape& shape) {
  const bool lets_go = shape.on_cpu && !runs_fused(config, shape);
  return (lets_go ? 7 : 11) * config.width * shape.element_bytes;
}

// Gradients of the MLP or of attention, whose backward comes after it. And what was not kept.
std::int64_t working_block_bytes(const ModelConfig& config, const StepShape& shape) {
  const std::int64_t e = shape.element_bytes, mlp = mlp_gradient_bytes(config, shape);
  const std::int64_t mlp_again = 5 * config.width * e;
  const std::int64_t attention = attention_gradient_bytes(config, shape);
  switch (config.recompute) {
    case Recompute::kNone:
    case Recompute::kActivations:
      return std::max(mlp, attention);
    case Recompute::kMlp:
      return std::max(mlp + mlp_again, attention);
    case Recompute::kAttention:
      return std::max(mlp + mlp_again,
                      has_attention(config) ? attention + attention_bytes(config, shape) : 0);
    case Recompute::kBlocks: {
      // What comes from the host makes the next block's input and its norm again, too.
      const bool next = config.residuals == ResidualPlace::kHost;
      return std::max(mlp, attention) + whole_block_bytes(config, shape) +
             (next ? 2 * config.width * e : 0);
    }
  }
  return mlp;
}

// Rows of logits that are there at once.
std::int64_t rows_of_chunk(const ModelConfig& config, const StepShape& shape,
                           std::int64_t bytes_per_row) {
  return rows_of_loss_chunk({.rows = shape.batch * shape.sequence_length,
                             .bytes_per_row = bytes_per_row,
                             .chunk_bytes = shape.on_cpu ? kLossChunkBytes : kDeviceLossChunkBytes},
                            config.loss_chunks);
}

std::int64_t fused_row_bytes(const ModelConfig& config, const StepShape& shape) {
  return (config.padded_vocab_size + 63) / 64 * 64 * shape.element_bytes;
}

// Logits: LibTorch's operators widen them to fp32 and keep the log-probabilities; where logits are
// whole, backward has two more of that size.
std::int64_t logits_bytes(const ModelConfig& config, const StepShape& shape) {
  const std::int64_t tokens = shape.batch * shape.sequence_length,
                     columns = config.padded_vocab_size;
  if (runs_fused(config, shape)) {
    const std::int64_t row = fused_row_bytes(config, shape);
    return row * rows_of_chunk(config, shape, row);
  }
  const std::int64_t rows = rows_of_chunk(config, shape, columns * kFloatBytes);
  if (rows == tokens) return 3 * kFloatBytes * columns * rows;
  const std::int64_t narrow = shape.element_bytes < kFloatBytes ? shape.element_bytes : 0;
  return (2 * kFloatBytes + narrow) * columns * rows;
}

// Sums of the weight's gradient over chunks, in fp32 beside it where it is narrower; LibTorch's
// products on the processor have each chunk's part beside that.
std::int64_t weight_sum_bytes(const ModelConfig& config, const StepShape& shape) {
  const std::int64_t tokens = shape.batch * shape.sequence_length,
                     columns = config.padded_vocab_size, e = shape.element_bytes;
  const bool fused = runs_fused(config, shape);
  const std::int64_t row = fused ? fused_row_bytes(config, shape) : columns * kFloatBytes;
  if (e >= kFloatBytes || rows_of_chunk(config, shape, row) == tokens) return 0;
  const std::int64_t part = fused || !shape.on_cpu ? 0 : e;
  return columns * config.width * (kFloatBytes + part);
}

// Of each block its input. Where those go to the host, the first and the last one stay, and two are
// on their way out, or back.
std::int64_t inputs_on_device(const ModelConfig& config) {
  constexpr std::int64_t kStay = 2, kMoving = 2;
  if (config.residuals == ResidualPlace::kDevice) return config.layers;
  return std::min(config.layers, kStay + kMoving);
}

std::int64_t inputs_on_host(const ModelConfig& config) {
  return config.residuals == ResidualPlace::kHost ? offloaded_blocks(config) : 0;
}

}  // namespace

ActivationMemory activation_memory(const ModelConfig& config, const StepShape& shape) {
  const std::int64_t tokens = shape.batch * shape.sequence_length, e = shape.element_bytes,
                     stream = config.width * e;
  const std::int64_t mask = config.dropout > 0 ? stream : 0;
  // And the input of the last norm, and its output.
  const std::int64_t kept = inputs_on_device(config) * stream +
                            config.layers * kept_block_bytes(config, shape) + 2 * stream + mask +
                            2 * static_cast<std::int64_t>(sizeof(std::int64_t));
  // The weight's may lie in its bucket already, which is counted elsewhere: this is the most.
  const std::int64_t head_gradients = stream * tokens + config.padded_vocab_size * stream;
  return {.kept = static_cast<std::size_t>(tokens * kept),
          .host = static_cast<std::size_t>(tokens * inputs_on_host(config) * stream),
          .loss = static_cast<std::size_t>(logits_bytes(config, shape) + head_gradients +
                                           weight_sum_bytes(config, shape)),
          .working = static_cast<std::size_t>(tokens * working_block_bytes(config, shape) +
                                              config.padded_vocab_size * stream)};
}

}  // namespace sidestream::model
