#include <cmath>
#include <limits>

#include "tests/model/device/host_block.hpp"
#include "tests/model/device/tested_queue.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

// What cublasLt's epilogues promise, in fp32 with one rounding at the end.
class HostProducts : public EpilogueProducts {
 public:
  void with_gelu(const Tensor& x_rc, const Tensor& weight_ch, const Tensor& bias_h,
                 const Tensor& before_rh, const Tensor& activation_rh) const override {
    const Tensor before =
        at::addmm(bias_h.to(at::kFloat), x_rc.to(at::kFloat), weight_ch.to(at::kFloat));
    before_rh.copy_(before);
    activation_rh.copy_(at::gelu(before, "tanh"));
  }

  void through_gelu(const Tensor& dy_rc, const Tensor& weight_hc, const Tensor& before_rh,
                    const Tensor& grad_rh, const Tensor& bias_grad_h) const override {
    const Tensor grad =
        at::gelu_backward(at::mm(dy_rc.to(at::kFloat), weight_hc.to(at::kFloat).t()),
                          before_rh.to(at::kFloat), "tanh");
    grad_rh.copy_(grad);
    bias_grad_h.copy_(grad.sum(0));
  }

  void weight_gradient(const Tensor& x_rc, const Tensor& dy_rh, const Tensor& weight_grad_ch,
                       const Tensor& bias_grad_h) const override {
    weight_grad_ch.copy_(at::mm(x_rc.to(at::kFloat).t(), dy_rh.to(at::kFloat)));
    bias_grad_h.copy_(dy_rh.to(at::kFloat).sum(0));
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

LaunchQueuePtr tested_queue_with(Epilogues epilogues) {
  LaunchQueuePtr queue = tested_queue();
  queue->products = {.products = std::make_shared<HostProducts>(), .epilogues = epilogues};
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
