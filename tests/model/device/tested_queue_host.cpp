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

}  // namespace

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
