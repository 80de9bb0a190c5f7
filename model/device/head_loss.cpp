#include "model/device/head_loss.hpp"

#include <algorithm>

#include "model/fused/recorded.hpp"
#include "model/loss_chunks.hpp"

namespace sidestream::model::device {
namespace {

using fused::Inputs;
using fused::node_number;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

enum class Gradients { kNo, kYes };

struct Result {
  Tensor loss, x_grad, weight_grad;
};

// One loss: its inputs, and the buffers that chunks share.
class HeadLoss {
 public:
  HeadLoss(const LaunchQueue& queue, const Tensor& x_btc, const Tensor& weight_vc,
           const Tensor& targets_bt, const LossOptions& options, Gradients gradients)
      : queue_(queue),
        x_(rows_of(x_btc)),
        weight_(weight_vc),
        targets_(targets_bt.reshape({-1}).contiguous()),
        vocab_size_(options.vocab_size),
        stride_((weight_.size(0) + kLogitStride - 1) / kLogitStride * kLogitStride),
        chunk_rows_(rows_of_loss_chunk(
            {.rows = x_.size(0), .bytes_per_row = stride_ * x_.element_size()}, options.chunks)),
        gradients_(gradients),
        scale_(options.scale),
        logits_(at::empty({chunk_rows_, stride_}, x_.options())),
        losses_(at::empty({x_.size(0)}, x_.options().dtype(at::kFloat))) {
    if (gradients_ == Gradients::kNo) return;
    x_grad_ = at::empty_like(x_);
    weight_grad_ = at::empty_like(weight_);
  }

  Result run() {
    const std::int64_t rows = x_.size(0);
    for (std::int64_t row = 0; row < rows; row += chunk_rows_)
      run_chunk(row, std::min(chunk_rows_, rows - row));
    return {losses_.mean(), x_grad_, weight_grad_};
  }

 private:
  void run_chunk(std::int64_t row, std::int64_t rows) {
    const Tensor x = x_.narrow(0, row, rows);
    // Rows are as far apart as the kernel likes them; the products know of the distance.
    Tensor logits = logits_.narrow(0, 0, rows).narrow(1, 0, weight_.size(0));
    at::mm_out(logits, x, weight_.t());
    compute_losses(row, rows);
    if (gradients_ == Gradients::kNo) return;
    Tensor x_grad = x_grad_.narrow(0, row, rows);
    at::mm_out(x_grad, logits, weight_);
    at::addmm_out(weight_grad_, weight_grad_, logits.t(), x, row == 0 ? 0 : 1, 1);
  }

  void compute_losses(std::int64_t row, std::int64_t rows) {
    const float scale =
        gradients_ == Gradients::kYes ? 1.0f / static_cast<float>(x_.size(0)) : 0.0f;
    queue_.launch(&DeviceKernels::cross_entropy,
                  {.dtype = dtype_of(x_),
                   .rows = rows,
                   .stride = stride_,
                   .vocab_size = vocab_size_,
                   .logits = logits_.mutable_data_ptr(),
                   .targets = targets_.const_data_ptr<std::int64_t>() + row,
                   .losses = losses_.mutable_data_ptr<float>() + row,
                   .gradient_scale = scale,
                   .loss_scale = scale_.defined() ? scale_.const_data_ptr<float>() : nullptr},
                  x_);
  }

  const LaunchQueue& queue_;
  Tensor x_, weight_, targets_;
  std::int64_t vocab_size_, stride_, chunk_rows_;
  Gradients gradients_;
  Tensor scale_;
  Tensor logits_, losses_, x_grad_, weight_grad_;
};

struct HeadLossFunction : torch::autograd::Function<HeadLossFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x_btc, const Tensor& weight_vc,
                        const Tensor& targets_bt, const LossOptions& options, Gradients gradients,
                        const LaunchQueuePtr& queue) {
    const bool both = gradients == Gradients::kYes;
    RECORD_FUNCTION(both ? "sidestream::head_loss_and_gradients" : "sidestream::head_loss",
                    Inputs({x_btc, weight_vc}));
    Result result = HeadLoss(*queue, x_btc, weight_vc, targets_bt, options, gradients).run();
    if (both) {
      context->saved_data["x_grad"] = result.x_grad.view(x_btc.sizes());
      context->saved_data["weight_grad"] = result.weight_grad;
      if (options.scale.defined()) context->saved_data["scale"] = options.scale;
    }
    return result.loss;
  }

  // The factor stays on the device: most often it is 1, and to ask would be to wait for it.
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    auto& saved = context->saved_data;
    TORCH_CHECK(saved.count("x_grad") == 1,
                "the fused loss can be differentiated once; --fused-ops off has no such limit");
    const Tensor factor =
        missing_factor(grads[0], saved.count("scale") == 1 ? saved["scale"].toTensor() : Tensor());
    tensor_list result(6);
    result[0] = saved["x_grad"].toTensor().mul_(factor);
    result[1] = saved["weight_grad"].toTensor().mul_(factor);
    saved.erase("x_grad");
    saved.erase("weight_grad");
    return result;
  }
};

}  // namespace

Tensor next_token_loss(const LaunchQueuePtr& queue, const Tensor& x_btc, const Tensor& weight_vc,
                       const Tensor& targets_bt, const LossOptions& options) {
  const bool wanted =
      at::GradMode::is_enabled() && (x_btc.requires_grad() || weight_vc.requires_grad());
  return HeadLossFunction::apply(x_btc, weight_vc, targets_bt, options,
                                 wanted ? Gradients::kYes : Gradients::kNo, queue);
}

}  // namespace sidestream::model::device
