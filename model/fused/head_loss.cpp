#include "model/fused/head_loss.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include <ATen/Parallel.h>
#include <c10/util/StringUtil.h>

#include "core/base/error.hpp"
#include "model/fused/linear_products.hpp"
#include "model/fused/recorded.hpp"
#include "model/ignored_target.hpp"
#include "model/kernels/cross_entropy.hpp"
#include "model/loss_chunks.hpp"
#include "model/loss_gradients.hpp"
#include "model/tied_gradient.hpp"

namespace sidestream::model::fused {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// One loss: its inputs, and the buffers that chunks share.
template <typename T>
class HeadLoss {
 public:
  HeadLoss(const Tensor& x_btc, const Tensor& weight_vc, const Tensor& targets_bt,
           const LossOptions& options, LossGradients gradients,
           const GradientPlace& weight_gradient)
      : x_(x_btc),
        weight_(weight_vc),
        targets_(data_of<std::int64_t>(targets_bt)),
        vocab_size_(options.vocab_size),
        stride_((weight_.rows + 63) / 64 * 64),
        chunk_rows_(rows_of_loss_chunk(
            {.rows = x_.rows, .bytes_per_row = stride_ * static_cast<std::int64_t>(sizeof(T))},
            options.chunks)),
        gradients_(gradients),
        logits_(scratch<T>(chunk_rows_ * stride_)),
        losses_(at::empty({x_.rows}, at::kFloat)),
        count_(x_.rows - std::count(targets_, targets_ + x_.rows, kIgnoredTarget)) {
    if (gradients_ == LossGradients::kNo) return;
    // In fp32, so that the number of chunks costs no digits.
    if (chunk_rows_ < x_.rows && !std::is_same_v<T, float>)
      weight_sums_ = scratch<float>(weight_.rows * weight_.columns);
    x_grad_ = at::empty_like(x_btc);
    weight_grad_ = or_empty(weight_gradient.memory, weight_vc.sizes(), weight_vc.options());
  }

  LossResult run() {
    for (std::int64_t row = 0; row < x_.rows; row += chunk_rows_)
      run_chunk(row, std::min(chunk_rows_, x_.rows - row));
    const float* losses = data_of<float>(losses_);
    const double sum = std::accumulate(losses, losses + x_.rows, 0.0);
    return {at::scalar_tensor(sum / static_cast<double>(count_), at::kFloat), x_grad_,
            weight_grad_};
  }

 private:
  void run_chunk(std::int64_t row, std::int64_t rows) {
    compute_logits(row, rows);
    compute_losses(row, rows);
    if (gradients_ == LossGradients::kNo) return;
    compute_x_grad(row, rows);
    compute_weight_grad(row, rows);
  }

  void compute_logits(std::int64_t row, std::int64_t rows) {
    product_into<T>(
        {.m = rows, .n = weight_.rows, .k = x_.columns},
        {.data = x_.data + row * x_.columns, .stride = x_.columns},
        {.data = weight_.data, .stride = weight_.columns, .orientation = Orientation::kTransposed},
        kernels::Rows<T>{data_of<T>(logits_), stride_});
  }

  void compute_losses(std::int64_t first_row, std::int64_t rows) {
    at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        data_of<float>(losses_)[first_row + i] =
            loss_of(targets_[first_row + i], data_of<T>(logits_) + i * stride_);
      }
    });
  }

  // Of one row, whose gradient replaces its logits.
  float loss_of(std::int64_t target, T* logits) const {
    const bool differentiates = gradients_ == LossGradients::kYes;
    if (target == kIgnoredTarget) {
      if (differentiates) std::fill_n(logits, stride_, T(0.0f));
      return 0;
    }
    return kernels::cross_entropy(
        {.vocab_size = vocab_size_,
         .columns = stride_,
         .target = target,
         .gradient_scale = differentiates ? 1.0f / static_cast<float>(count_) : 0.0f},
        logits);
  }

  void compute_x_grad(std::int64_t row, std::int64_t rows) {
    product_into<T>({.m = rows, .n = x_.columns, .k = weight_.rows},
                    {.data = data_of<T>(logits_), .stride = stride_},
                    {.data = weight_.data, .stride = weight_.columns},
                    kernels::Rows<T>{data_of<T>(x_grad_) + row * x_.columns, x_.columns});
  }

  void compute_weight_grad(std::int64_t row, std::int64_t rows) {
    const ProductShape shape{.m = weight_.rows, .n = x_.columns, .k = rows};
    const LeftFactor<T> logits{
        .data = data_of<T>(logits_), .stride = stride_, .orientation = Orientation::kTransposed};
    const RightFactor<T> x{.data = x_.data + row * x_.columns, .stride = x_.columns};
    const kernels::Rows<T> out{data_of<T>(weight_grad_), x_.columns};
    if (!weight_sums_.defined()) {
      product_into<T>(shape, logits, x, out, row == 0 ? Existing::kReplace : Existing::kAdd,
                      NextRead::kLater);
      return;
    }
    const bool first = row == 0, last = row + rows == x_.rows;
    product<T>(shape, logits, x, [&](const kernels::Tile& tile, TilePlace at) {
      const std::int64_t place = at.row * x_.columns + at.column;
      const kernels::Rows<float> sums{data_of<float>(weight_sums_) + place, x_.columns};
      first ? kernels::store(tile, sums) : kernels::add(tile, sums);
      if (!last) return;
      kernels::store({sums.data, sums.stride, tile.rows, tile.columns},
                     kernels::Rows<T>{out.data + place, out.stride});
    });
  }

  Matrix<T> x_, weight_;
  const std::int64_t* targets_;
  std::int64_t vocab_size_, stride_, chunk_rows_;
  LossGradients gradients_;
  Tensor logits_, losses_, x_grad_, weight_grad_;
  std::int64_t count_;  // of targets that are not left out
  Tensor weight_sums_;  // in fp32; undefined: the gradient's own type will do
};

void check_targets(const Tensor& targets, std::int64_t vocab_size) {
  const auto* ids = data_of<std::int64_t>(targets);
  const auto outside = [&](std::int64_t id) {
    return (id < 0 || id >= vocab_size) && id != kIgnoredTarget;
  };
  const auto* bad = std::find_if(ids, ids + targets.numel(), outside);
  if (bad == ids + targets.numel()) return;
  throw core::DataError(
      c10::str("target token id ", *bad, " is outside the vocabulary of ", vocab_size));
}

struct HeadLossFunction : torch::autograd::Function<HeadLossFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x_btc, const Embeddings& embeddings,
                        const Tensor& weight_vc, const Tensor& targets_bt,
                        const LossOptions& options, LossGradients gradients,
                        const GradientPlace& weight_gradient) {
    const bool both = gradients == LossGradients::kYes;
    RECORD_FUNCTION(both ? "sidestream::head_loss_and_gradients" : "sidestream::head_loss",
                    Inputs({x_btc, weight_vc}));
    LossResult result;
    with_element_type(x_btc.scalar_type(), [&]<typename T>(T*) {
      result = HeadLoss<T>(x_btc, weight_vc, targets_bt, options, gradients, weight_gradient).run();
    });
    loss_gradients::keep(context, result);
    tied_gradient::keep(context, embeddings.tied);
    return result.loss;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto take = [&](const char* name) {
      return loss_gradients::take(context, name, grads[0], "--fused-ops off");
    };
    tensor_list result(7);
    result[0] = take(loss_gradients::kInput);
    result[2] = tied_gradient::pass_on(context, take(loss_gradients::kWeight));
    return result;
  }
};

}  // namespace

Tensor next_token_loss(const Tensor& x_btc, const Embeddings& embeddings, const Tensor& targets_bt,
                       const LossOptions& options, const GradientPlace& weight_gradient) {
  const Tensor targets = targets_bt.contiguous();
  check_targets(targets, options.vocab_size);
  return HeadLossFunction::apply(x_btc.contiguous(), embeddings, embeddings.tokens_vc, targets,
                                 options, wanted_gradients(x_btc, embeddings.tokens_vc),
                                 weight_gradient);
}

}  // namespace sidestream::model::fused
