#include "model/device/head_loss.hpp"

#include <algorithm>
#include <optional>

#include "core/base/multiple.hpp"
#include "model/device/multiply.hpp"
#include "model/fused/recorded.hpp"
#include "model/ignored_target.hpp"
#include "model/loss_chunks.hpp"
#include "model/loss_gradients.hpp"
#include "model/tied_gradient.hpp"
#include "model/weight_gradient_sum.hpp"

namespace sidestream::model::device {
namespace {

using fused::Inputs;
using fused::node_number;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// One loss: its inputs, and the buffers that chunks share.
class HeadLoss {
 public:
  HeadLoss(const LaunchQueue& queue, const Tensor& x_btc, const Tensor& weight_vc,
           const Tensor& targets_bt, const LossOptions& options, LossGradients gradients,
           const fused::GradientPlace& weight_gradient)
      : queue_(queue),
        x_(rows_of(x_btc)),
        weight_(weight_vc),
        targets_(targets_bt.reshape({-1}).contiguous()),
        vocab_size_(options.vocab_size),
        stride_(core::rounded_up(weight_.size(0), kLogitStride)),
        chunk_rows_(rows_of_loss_chunk({.rows = x_.size(0),
                                        .bytes_per_row = stride_ * x_.element_size(),
                                        .chunk_bytes = kDeviceLossChunkBytes},
                                       options.chunks)),
        gradients_(gradients),
        scale_(options.scale),
        logits_(at::empty({chunk_rows_, stride_}, x_.options())),
        losses_(at::empty({x_.size(0)}, x_.options().dtype(at::kFloat))) {
    if (gradients_ == LossGradients::kNo) return;
    x_grad_ = at::empty_like(x_);
    weight_sum_.emplace(weight_, chunk_rows_ < x_.size(0) ? LossChunks::kSeveral : LossChunks::kOne,
                        weight_gradient.memory,
                        [&queue](const auto& left, const auto& right, const auto& sum,
                                 WeightGradientSum::Existing existing) {
                          return existing == WeightGradientSum::Existing::kReplaced
                                     ? own_product(queue, left, right, sum)
                                     : own_product_added(queue, left, right, sum);
                        });
  }

  // The kernel divides by all rows; who differentiates is told how many there are to one that
  // counts. Nothing waits for the device: the count stays there.
  struct Outcome {
    LossResult result;
    Tensor rows_to_one;
  };
  Outcome run() {
    const std::int64_t rows = x_.size(0);
    for (std::int64_t row = 0; row < rows; row += chunk_rows_)
      run_chunk(row, std::min(chunk_rows_, rows - row));
    const Tensor count = targets_.ne(kIgnoredTarget).sum().to(at::kFloat);
    return {
        .result = {.loss = losses_.sum().div_(count),
                   .x_grad = x_grad_,
                   .weight_grad = weight_sum_ ? weight_sum_->take() : Tensor()},
        .rows_to_one = at::full_like(count, static_cast<double>(rows)).div_(count.clamp_min(1))};
  }

 private:
  void run_chunk(std::int64_t row, std::int64_t rows) {
    const Tensor x = x_.narrow(0, row, rows);
    // Rows are as far apart as the kernel likes them; the products know of the distance.
    const Tensor logits = logits_.narrow(0, 0, rows).narrow(1, 0, weight_.size(0));
    multiply_into(queue_, logits, x, weight_.t());
    compute_losses(row, rows);
    if (gradients_ == LossGradients::kNo) return;
    const Tensor x_grad = x_grad_.narrow(0, row, rows);
    multiply_into(queue_, x_grad, logits, weight_);
    weight_sum_->add(logits, x);
  }

  void compute_losses(std::int64_t row, std::int64_t rows) {
    const float scale =
        gradients_ == LossGradients::kYes ? 1.0f / static_cast<float>(x_.size(0)) : 0.0f;
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
  LossGradients gradients_;
  Tensor scale_;
  Tensor logits_, losses_, x_grad_;
  std::optional<WeightGradientSum> weight_sum_;
};

// In its own memory, where autograd takes it over without a copy. A factor of 1, which is the usual
// one and which nobody here can see without waiting for the device, costs no pass.
Tensor scaled(const LaunchQueue& queue, Tensor gradient, const Tensor& factor) {
  queue.launch(&DeviceKernels::scale,
               {.dtype = dtype_of(gradient),
                .count = gradient.numel(),
                .values = gradient.mutable_data_ptr(),
                .factor = factor.const_data_ptr<float>()},
               gradient);
  return gradient;
}

struct HeadLossFunction : torch::autograd::Function<HeadLossFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x_btc, const Embeddings& embeddings,
                        const Tensor& weight_vc, const Tensor& targets_bt,
                        const LossOptions& options, LossGradients gradients,
                        const fused::GradientPlace& weight_gradient, const LaunchQueuePtr& queue) {
    const bool both = gradients == LossGradients::kYes;
    RECORD_FUNCTION(both ? "sidestream::head_loss_and_gradients" : "sidestream::head_loss",
                    Inputs({x_btc, weight_vc}));
    const auto [result, rows_to_one] =
        HeadLoss(*queue, x_btc, weight_vc, targets_bt, options, gradients, weight_gradient).run();
    if (both) {
      loss_gradients::keep(context,
                           {.loss = {},
                            .x_grad = result.x_grad.view(x_btc.sizes()),
                            .weight_grad = result.weight_grad},
                           options.scale);
      context->saved_data[kRowsToOne] = rows_to_one;
      tied_gradient::keep(context, embeddings.tied);
      keep_queue(context, queue);
    }
    return result.loss;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    Tensor factor = loss_gradients::missing_factor(context, grads[0]);
    const auto rows_to_one = context->saved_data.find(kRowsToOne);
    if (rows_to_one != context->saved_data.end()) factor = factor * rows_to_one->second.toTensor();
    const LaunchQueuePtr queue = kept_queue(context);
    const auto take = [&](const char* name) {
      return scaled(*queue, loss_gradients::claim(context, name, "--fused-ops off"), factor);
    };
    tensor_list result(8);
    result[0] = take(loss_gradients::kInput);
    result[2] = tied_gradient::pass_on(context, take(loss_gradients::kWeight));
    return result;
  }

  static constexpr const char* kRowsToOne = "rows_to_one";
};

}  // namespace

Tensor next_token_loss(const LaunchQueuePtr& queue, const Tensor& x_btc,
                       const Embeddings& embeddings, const Tensor& targets_bt,
                       const LossOptions& options, const fused::GradientPlace& weight_gradient) {
  return HeadLossFunction::apply(x_btc, embeddings, embeddings.tokens_vc, targets_bt, options,
                                 wanted_gradients(x_btc, embeddings.tokens_vc), weight_gradient,
                                 queue);
}

}  // namespace sidestream::model::device
