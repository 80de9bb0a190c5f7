// PackedAttention by graphs of cuDNN's, one for each shape. LibTorch has the same kernels, but lets
// them write three tensors.
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include <ATen/cudnn/Handle.h>
#include <c10/cuda/CUDAGuard.h>

#include "core/base/error.hpp"
#include "model/device/attention_graph.hpp"
#include "model/device/packed_attention.hpp"

namespace sidestream::model::device {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using torch::Tensor;
using Memory = std::unordered_map<std::int64_t, void*>;  // by what lies there

void check(fe::error_t error, const char* doing) {
  if (error.is_good()) return;
  throw core::Error(std::string("cuDNN, attention of packed operands: ") + doing + ": " +
                    error.get_message() + "; --packed-attention off has LibTorch's");
}

// cuDNN's plans belong to the handle that they were made with, and LibTorch's handles to one thread
// each: no plan is run by two threads.
struct Key {
  cudnnHandle_t handle;
  AttentionShape shape;

  auto operator<=>(const Key&) const = default;
};

std::shared_ptr<Graph> built(const Key& key) {
  std::shared_ptr<Graph> graph = attention_graph(key.shape);
  check(graph->build(key.handle, {fe::HeurMode_t::A}), "its graph");
  return graph;
}

// Graphs are made at the first use of a shape, which takes a while, and kept.
class Graphs {
 public:
  std::shared_ptr<Graph> of(const Key& key) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<Graph>& graph = graphs_[key];
    if (!graph) graph = built(key);
    return graph;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Graph>> graphs_;
};

Memory operands(const Tensor& qkv_bt3c, const Tensor& out_btc, const Tensor& log_sums_bht) {
  return {{kQueries, part_of(qkv_bt3c, 0, 3)},
          {kKeys, part_of(qkv_bt3c, 1, 3)},
          {kValues, part_of(qkv_bt3c, 2, 3)},
          {kOut, out_btc.data_ptr()},
          {kLogSums, log_sums_bht.data_ptr()}};
}

class CudnnAttention : public PackedAttention {
 public:
  std::string objection(const Sizes& sizes) const override {
    for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
      const std::shared_ptr<Graph> graph = attention_graph(shape_of(pass, sizes));
      if (std::string found = objection_to(*graph, at::native::getCudnnHandle()); !found.empty())
        return found;
    }
    return {};
  }

  void forward(const Forward& job) const override {
    run(AttentionPass::kForward, job.qkv_bt3c, job.heads,
        operands(job.qkv_bt3c, job.out_btc, job.log_sums_bht));
  }

  void backward(const Backward& job) const override {
    Memory memory = operands(job.qkv_bt3c, job.out_btc, job.log_sums_bht);
    memory.insert({{kOutGrad, job.out_grad_btc.data_ptr()},
                   {kQueryGrads, part_of(job.qkv_grad_bt3c, 0, 3)},
                   {kKeyGrads, part_of(job.qkv_grad_bt3c, 1, 3)},
                   {kValueGrads, part_of(job.qkv_grad_bt3c, 2, 3)}});
    run(AttentionPass::kBackward, job.qkv_bt3c, job.heads, std::move(memory));
  }

 private:
  static AttentionShape shape_of(AttentionPass pass, const Sizes& sizes) {
    return {.pass = pass,
            .dtype = sizes.dtype,
            .deterministic = pass == AttentionPass::kBackward && sizes.deterministic,
            .batch = sizes.batch,
            .time = sizes.time,
            .heads = sizes.heads,
            .head_width = sizes.head_width};
  }

  void run(AttentionPass pass, const Tensor& qkv_bt3c, std::int64_t heads, Memory memory) const {
    const c10::cuda::CUDAGuard guard(qkv_bt3c.device());
    const Key key{
        .handle = at::native::getCudnnHandle(),
        .shape = shape_of(pass, {.dtype = qkv_bt3c.scalar_type(),
                                 .deterministic = at::globalContext().deterministicAlgorithms(),
                                 .batch = qkv_bt3c.size(0),
                                 .time = qkv_bt3c.size(1),
                                 .heads = heads,
                                 .head_width = qkv_bt3c.size(2) / 3 / heads})};
    const std::shared_ptr<Graph> graph = graphs_->of(key);
    // Of LibTorch's allocator: given back at once, to what comes later on this stream.
    std::int64_t bytes = 0;
    check(graph->get_workspace_size(bytes), "its workspace");
    const Tensor workspace = at::empty({bytes}, qkv_bt3c.options().dtype(at::kByte));
    check(graph->execute(key.handle, memory, workspace.data_ptr()), "its launch");
  }

  std::unique_ptr<Graphs> graphs_ = std::make_unique<Graphs>();
};

}  // namespace

std::shared_ptr<const PackedAttention> make_packed_attention() {
  return std::make_shared<CudnnAttention>();
}

}  // namespace sidestream::model::device
