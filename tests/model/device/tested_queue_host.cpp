#include <cmath>
#include <limits>

#include "model/device/lt_products.hpp"
#include "tests/model/device/host_block.hpp"
#include "tests/model/device/tested_queue.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

// What cublasLt's documentation says of such products, in fp32 with one rounding at the end.
class HostProducts : public LtProducts {
 private:
  static Tensor seen(const LtMatrix& matrix) {
    return at::from_blob(matrix.memory, {matrix.rows, matrix.columns}, {1, matrix.stride},
                         matrix.dtype);
  }
  static Tensor factor(const LtOperand& operand) {
    const Tensor matrix = seen(operand.matrix).to(at::kFloat);
    return operand.transposed ? matrix.t() : matrix;
  }

  void run(const LtProduct& product, const Tensor& of_out) const override {
    const Tensor out = seen(product.out);
    Tensor result = at::mm(factor(product.first), factor(product.second));
    if (product.added) result += out;
    if (product.bias != nullptr)
      result += at::from_blob(product.bias, {out.size(0), 1}, of_out.scalar_type());
    out.copy_(result);
  }
};

// [B, H, T, C / H] in fp32 of the i-th of `parts` operands in [B, T, parts * C].
Tensor heads_of(const Tensor& packed, std::int64_t heads, std::int64_t i, std::int64_t parts) {
  const std::int64_t width = packed.size(2) / parts;
  return packed.narrow(2, i * width, width)
      .unflatten(2, {heads, width / heads})
      .transpose(1, 2)
      .to(at::kFloat);
}

// What cuDNN's graphs promise, written out: softmax is made again from the kept sums.
class HostAttention : public PackedAttention {
 public:
  std::string objection(const Sizes&) const override { return {}; }

  void forward(const Forward& job) const override {
    const Tensor scores = scores_of(job.qkv_bt3c, job.heads),
                 log_sums = at::logsumexp(scores, 3, /*keepdim=*/true);
    const Tensor out =
        at::matmul((scores - log_sums).exp(), heads_of(job.qkv_bt3c, job.heads, 2, 3));
    job.out_btc.copy_(out.transpose(1, 2).flatten(2));
    job.log_sums_bht.copy_(log_sums.squeeze(3));
  }

  void backward(const Backward& job) const override {
    const auto operand = [&](std::int64_t i) { return heads_of(job.qkv_bt3c, job.heads, i, 3); };
    const Tensor probabilities =
                     (scores_of(job.qkv_bt3c, job.heads) - job.log_sums_bht.unsqueeze(3)).exp(),
                 out_grad = heads_of(job.out_grad_btc, job.heads, 0, 1),
                 out = heads_of(job.out_btc, job.heads, 0, 1);
    const Tensor score_grad = probabilities *
                              (at::matmul(out_grad, operand(2).transpose(2, 3)) -
                               (out_grad * out).sum(3, /*keepdim=*/true)) *
                              scale_of(operand(0));
    const auto write = [&](std::int64_t i, const Tensor& grad) {
      const std::int64_t width = job.out_btc.size(2);
      job.qkv_grad_bt3c.narrow(2, i * width, width).copy_(grad.transpose(1, 2).flatten(2));
    };
    write(0, at::matmul(score_grad, operand(1)));
    write(1, at::matmul(score_grad.transpose(2, 3), operand(0)));
    write(2, at::matmul(probabilities.transpose(2, 3), out_grad));
  }

 private:
  static double scale_of(const Tensor& queries) {
    return 1 / std::sqrt(static_cast<double>(queries.size(3)));
  }
  static Tensor scores_of(const Tensor& qkv_bt3c, std::int64_t heads) {
    const Tensor queries = heads_of(qkv_bt3c, heads, 0, 3);
    const Tensor scores =
        at::matmul(queries, heads_of(qkv_bt3c, heads, 1, 3).transpose(2, 3)) * scale_of(queries);
    const std::int64_t time = scores.size(3);
    return scores.masked_fill(at::ones({time, time}, at::kBool).triu(1),
                              -std::numeric_limits<float>::infinity());
  }
};

}  // namespace

LaunchQueuePtr tested_queue_with_packed_attention() {
  LaunchQueuePtr queue = tested_queue();
  queue->attention = std::make_shared<HostAttention>();
  return queue;
}

LaunchQueuePtr tested_queue_with_products() {
  LaunchQueuePtr queue = tested_queue();
  queue->products = std::make_shared<HostProducts>();
  return queue;
}

LaunchQueuePtr tested_queue() {
  auto queue = c10::make_intrusive<LaunchQueue>();
  queue->kernels = std::make_shared<HostKernels>();
  queue->device = torch::kCPU;
  queue->current_stream = [](const torch::Device&) { return nullptr; };
  return queue;
}

}  // namespace sidestream::model::device
