#include "model/device/attention_graph.hpp"

#include <cmath>
#include <vector>

namespace sidestream::model::device {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;

std::vector<std::int64_t> sizes(const AttentionShape& shape) {
  return {shape.batch, shape.heads, shape.time, shape.head_width};
}

// Of one of `parts` operands that lie side by side.
std::vector<std::int64_t> strides(const AttentionShape& shape, std::int64_t parts) {
  const std::int64_t row = parts * shape.heads * shape.head_width;
  return {shape.time * row, shape.head_width, row, 1};
}

float scale(const AttentionShape& shape) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_width)));
}

using Node = std::shared_ptr<fe::graph::Tensor_attributes>;

Node read(Graph& graph, AttentionOperand operand, const AttentionShape& shape, std::int64_t parts) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(operand)
                          .set_dim(sizes(shape))
                          .set_stride(strides(shape, parts)));
}

void write(const Node& node, AttentionOperand operand, const AttentionShape& shape,
           std::int64_t parts) {
  node->set_output(true).set_uid(operand).set_dim(sizes(shape)).set_stride(strides(shape, parts));
}

void describe_log_sums(fe::graph::Tensor_attributes& node, const AttentionShape& shape) {
  node.set_uid(kLogSums)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim({shape.batch, shape.heads, shape.time, 1})
      .set_stride({shape.heads * shape.time, shape.time, 1, 1});
}

void add_forward(Graph& graph, const AttentionShape& shape) {
  const Node queries = read(graph, kQueries, shape, 3), keys = read(graph, kKeys, shape, 3),
             values = read(graph, kValues, shape, 3);
  const auto [out, log_sums] = graph.sdpa(queries, keys, values,
                                          fe::graph::SDPA_attributes()
                                              .set_name("attention")
                                              .set_generate_stats(true)
                                              .set_causal_mask(true)
                                              .set_attn_scale(scale(shape)));
  write(out, kOut, shape, 1);
  log_sums->set_output(true);
  describe_log_sums(*log_sums, shape);
}

void add_backward(Graph& graph, const AttentionShape& shape) {
  const Node queries = read(graph, kQueries, shape, 3), keys = read(graph, kKeys, shape, 3),
             values = read(graph, kValues, shape, 3), out = read(graph, kOut, shape, 1),
             out_grad = read(graph, kOutGrad, shape, 1);
  fe::graph::Tensor_attributes described;
  describe_log_sums(described, shape);
  const Node log_sums = graph.tensor(described);
  const auto [query_grads, key_grads, value_grads] =
      graph.sdpa_backward(queries, keys, values, out, out_grad, log_sums,
                          fe::graph::SDPA_backward_attributes()
                              .set_name("attention_backward")
                              .set_causal_mask(true)
                              .set_deterministic_algorithm(shape.deterministic)
                              .set_attn_scale(scale(shape)));
  write(query_grads, kQueryGrads, shape, 3);
  write(key_grads, kKeyGrads, shape, 3);
  write(value_grads, kValueGrads, shape, 3);
}

}  // namespace

std::shared_ptr<Graph> attention_graph(const AttentionShape& shape) {
  auto graph = std::make_shared<Graph>();
  graph
      ->set_io_data_type(shape.dtype == at::kHalf ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  if (shape.pass == AttentionPass::kForward)
    add_forward(*graph, shape);
  else
    add_backward(*graph, shape);
  return graph;
}

std::string objection_to(Graph& graph, cudnnHandle_t handle) {
  if (auto error = graph.validate(); error.is_bad()) return error.get_message();
  if (auto error = graph.build_operation_graph(handle); error.is_bad()) return error.get_message();
  if (auto error = graph.create_execution_plans({fe::HeurMode_t::A}); error.is_bad())
    return error.get_message();
  if (auto error = graph.check_support(); error.is_bad()) return error.get_message();
  return {};
}

}  // namespace sidestream::model::device
