// PackedAttention by graphs of cuDNN's, one for each shape (cudnn-frontend, "Attention": the nodes
// sdpa and sdpa_backward). LibTorch has the same kernels, but lets them write three tensors.
#include <cudnn_frontend.h>

#include <cmath>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/cudnn/Handle.h>
#include <c10/cuda/CUDAGuard.h>

#include "core/base/error.hpp"
#include "model/device/packed_attention.hpp"

namespace sidestream::model::device {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using torch::Tensor;
using Memory = std::unordered_map<std::int64_t, void*>;  // by what lies there

enum Operand : std::int64_t {
  kQueries = 1,
  kKeys,
  kValues,
  kOut,
  kLogSums,
  kOutGrad,
  kQueryGrads,
  kKeyGrads,
  kValueGrads
};

void check(fe::error_t error, const char* doing) {
  if (error.is_good()) return;
  throw core::Error(std::string("cuDNN, attention of packed operands: ") + doing + ": " +
                    error.get_message() + "; --packed-attention off has LibTorch's");
}

enum class Pass { kForward, kBackward };

// What a graph is made for. cuDNN's plans belong to the handle that they were made with, and
// LibTorch's handles to one thread each: no plan is run by two threads.
struct Key {
  cudnnHandle_t handle;
  Pass pass;
  at::ScalarType dtype;
  bool deterministic;
  std::int64_t batch, time, heads, head_width;

  auto operator<=>(const Key&) const = default;

  // Of [B, H, T, C / H] within [B, T, parts * C].
  std::vector<std::int64_t> sizes() const { return {batch, heads, time, head_width}; }
  std::vector<std::int64_t> strides(std::int64_t parts) const {
    const std::int64_t row = parts * heads * head_width;
    return {time * row, head_width, row, 1};
  }
  float scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(head_width))); }
};

using Node = std::shared_ptr<fe::graph::Tensor_attributes>;

Node read(Graph& graph, Operand operand, const Key& key, std::int64_t parts) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(operand)
                          .set_dim(key.sizes())
                          .set_stride(key.strides(parts)));
}

void write(const Node& node, Operand operand, const Key& key, std::int64_t parts) {
  node->set_output(true).set_uid(operand).set_dim(key.sizes()).set_stride(key.strides(parts));
}

void describe_log_sums(fe::graph::Tensor_attributes& node, const Key& key) {
  node.set_uid(kLogSums)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim({key.batch, key.heads, key.time, 1})
      .set_stride({key.heads * key.time, key.time, 1, 1});
}

void add_forward(Graph& graph, const Key& key) {
  const Node queries = read(graph, kQueries, key, 3), keys = read(graph, kKeys, key, 3),
             values = read(graph, kValues, key, 3);
  const auto [out, log_sums] = graph.sdpa(queries, keys, values,
                                          fe::graph::SDPA_attributes()
                                              .set_name("attention")
                                              .set_generate_stats(true)
                                              .set_causal_mask(true)
                                              .set_attn_scale(key.scale()));
  write(out, kOut, key, 1);
  log_sums->set_output(true);
  describe_log_sums(*log_sums, key);
}

void add_backward(Graph& graph, const Key& key) {
  const Node queries = read(graph, kQueries, key, 3), keys = read(graph, kKeys, key, 3),
             values = read(graph, kValues, key, 3), out = read(graph, kOut, key, 1),
             out_grad = read(graph, kOutGrad, key, 1);
  fe::graph::Tensor_attributes described;
  describe_log_sums(described, key);
  const Node log_sums = graph.tensor(described);
  const auto [query_grads, key_grads, value_grads] =
      graph.sdpa_backward(queries, keys, values, out, out_grad, log_sums,
                          fe::graph::SDPA_backward_attributes()
                              .set_name("attention_backward")
                              .set_causal_mask(true)
                              .set_deterministic_algorithm(key.deterministic)
                              .set_attn_scale(key.scale()));
  write(query_grads, kQueryGrads, key, 3);
  write(key_grads, kKeyGrads, key, 3);
  write(value_grads, kValueGrads, key, 3);
}

std::shared_ptr<Graph> made(const Key& key) {
  auto graph = std::make_shared<Graph>();
  graph->set_io_data_type(key.dtype == at::kHalf ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  key.pass == Pass::kForward ? add_forward(*graph, key) : add_backward(*graph, key);
  check(graph->build(key.handle, {fe::HeurMode_t::A}), "its graph");
  return graph;
}

// Graphs are made at the first use of a shape, which takes a while, and kept.
class Graphs {
 public:
  std::shared_ptr<Graph> of(const Key& key) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<Graph>& graph = graphs_[key];
    if (!graph) graph = made(key);
    return graph;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Graph>> graphs_;
};

// The i-th of `parts` matrices that lie side by side in each row.
void* part(const Tensor& tensor, std::int64_t i = 0, std::int64_t parts = 1) {
  const auto bytes = static_cast<std::int64_t>(tensor.element_size());
  return static_cast<char*>(tensor.data_ptr()) + i * (tensor.size(2) / parts) * bytes;
}

Memory operands(const Tensor& qkv_bt3c, const Tensor& out_btc, const Tensor& log_sums_bht) {
  return {{kQueries, part(qkv_bt3c, 0, 3)},
          {kKeys, part(qkv_bt3c, 1, 3)},
          {kValues, part(qkv_bt3c, 2, 3)},
          {kOut, part(out_btc)},
          {kLogSums, log_sums_bht.data_ptr()}};
}

class CudnnAttention : public PackedAttention {
 public:
  void forward(const Forward& job) const override {
    run(Pass::kForward, job.qkv_bt3c, job.heads,
        operands(job.qkv_bt3c, job.out_btc, job.log_sums_bht));
  }

  void backward(const Backward& job) const override {
    Memory memory = operands(job.qkv_bt3c, job.out_btc, job.log_sums_bht);
    memory.insert({{kOutGrad, part(job.out_grad_btc)},
                   {kQueryGrads, part(job.qkv_grad_bt3c, 0, 3)},
                   {kKeyGrads, part(job.qkv_grad_bt3c, 1, 3)},
                   {kValueGrads, part(job.qkv_grad_bt3c, 2, 3)}});
    run(Pass::kBackward, job.qkv_bt3c, job.heads, std::move(memory));
  }

 private:
  void run(Pass pass, const Tensor& qkv_bt3c, std::int64_t heads, Memory memory) const {
    const c10::cuda::CUDAGuard guard(qkv_bt3c.device());
    const Key key{
        .handle = at::native::getCudnnHandle(),
        .pass = pass,
        .dtype = qkv_bt3c.scalar_type(),
        .deterministic = pass == Pass::kBackward && at::globalContext().deterministicAlgorithms(),
        .batch = qkv_bt3c.size(0),
        .time = qkv_bt3c.size(1),
        .heads = heads,
        .head_width = qkv_bt3c.size(2) / 3 / heads};
    const std::shared_ptr<Graph> graph = graphs_->of(key);
    // Of LibTorch's allocator: given back at once, to what comes later on this stream.
    const Tensor workspace =
        at::empty({graph->get_workspace_size()}, qkv_bt3c.options().dtype(at::kByte));
    check(graph->execute(key.handle, memory, workspace.data_ptr()), "its launch");
  }

  std::unique_ptr<Graphs> graphs_ = std::make_unique<Graphs>();
};

}  // namespace

std::shared_ptr<const PackedAttention> make_packed_attention() {
  return std::make_shared<CudnnAttention>();
}

}  // namespace sidestream::model::device
