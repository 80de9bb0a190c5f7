// Causal attention of packed operands as a graph of cuDNN's (cudnn-frontend, "Attention": the nodes
// sdpa and sdpa_backward): described, not built yet. Includes cuDNN's frontend.
#pragma once

#include <cudnn_frontend.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include <c10/core/ScalarType.h>

namespace sidestream::model::device {

// By what a graph's memory is named. Of queries to out gradients [B, H, T, C / H], within rows of C
// or 3 C.
enum AttentionOperand : std::int64_t {
  kQueries = 1,
  kKeys,
  kValues,
  kOut,
  kLogSums,  // [B, H, T, 1], fp32
  kOutGrad,
  kQueryGrads,
  kKeyGrads,
  kValueGrads
};

enum class AttentionPass { kForward, kBackward };

struct AttentionShape {
  AttentionPass pass;
  c10::ScalarType dtype;  // kHalf or kBFloat16
  bool deterministic;     // of gradients
  std::int64_t batch, time, heads, head_width;

  auto operator<=>(const AttentionShape&) const = default;
};

std::shared_ptr<cudnn_frontend::graph::Graph> attention_graph(const AttentionShape& shape);

// Why the GPU of the handle, or without one that which the graph was told of, has no kernels for
// it, in cuDNN's words; empty: it has.
std::string objection_to(cudnn_frontend::graph::Graph& graph, cudnnHandle_t handle = nullptr);

}  // namespace sidestream::model::device
