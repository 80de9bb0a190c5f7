#include "model/chunked_loss.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/ignored_target.hpp"
#include "model/loss_gradients.hpp"
#include "model/weight_gradient_sum.hpp"

namespace sidestream::model::plain {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct Chunking {
  std::int64_t vocab_size, rows;
  LossGradients gradients;
  Tensor scale;
};

class ChunkedLoss {
 public:
  ChunkedLoss(const Tensor& x_nc, const Tensor& weight_vc, const Tensor& targets_n,
              const Chunking& chunking)
      : x_nc_(x_nc),
        weight_vc_(weight_vc),
        targets_n_(targets_n),
        chunking_(chunking),
        type_(x_nc.scalar_type() == at::kDouble ? at::kDouble : at::kFloat),
        inverse_count_(targets_n.ne(kIgnoredTarget).sum().to(type_).reciprocal()),
        gradient_factor_(chunking.scale.defined() ? inverse_count_ * chunking.scale
                                                  : inverse_count_) {
    if (chunking_.gradients == LossGradients::kNo) return;
    result_.x_grad = at::empty_like(x_nc);
    weight_sum_.emplace(weight_vc,
                        chunking.rows < x_nc.size(0) ? LossChunks::kSeveral : LossChunks::kOne);
  }

  // Nothing waits for the device: sums and count stay there.
  LossResult run() {
    Tensor sum = at::zeros({}, x_nc_.options().dtype(type_));
    for (std::int64_t row = 0; row < x_nc_.size(0); row += chunking_.rows)
      sum.add_(loss_of(row, std::min(chunking_.rows, x_nc_.size(0) - row)));
    result_.loss = sum.mul_(inverse_count_);
    if (weight_sum_) result_.weight_grad = weight_sum_->take();
    return result_;
  }

 private:
  // The sum over the rows of a chunk.
  Tensor loss_of(std::int64_t row, std::int64_t rows) {
    const Tensor x = x_nc_.narrow(0, row, rows), targets = targets_n_.narrow(0, row, rows);
    Tensor logits_nv = at::mm(x, weight_vc_.t());
    Tensor log_probabilities =
        at::log_softmax(logits_nv.narrow(1, 0, chunking_.vocab_size), 1, type_);
    Tensor loss = at::nll_loss(log_probabilities, targets, {}, at::Reduction::Sum, kIgnoredTarget);
    if (chunking_.gradients == LossGradients::kYes) {
      logits_nv.narrow(1, 0, chunking_.vocab_size)
          .copy_(logits_gradient(std::move(log_probabilities), targets));
      add_gradients(row, x, logits_nv);
    }
    return loss;
  }

  // (softmax - 1 at the target) * scale / count, in the memory of the log-probabilities.
  Tensor logits_gradient(Tensor log_probabilities, const Tensor& targets) const {
    const Tensor ignored = targets.eq(kIgnoredTarget);
    Tensor gradient = log_probabilities.exp_();
    gradient.scatter_add_(1, targets.masked_fill(ignored, 0).unsqueeze(1),
                          at::full({targets.size(0), 1}, -1, gradient.options()));
    return gradient.mul_(gradient_factor_).masked_fill_(ignored.unsqueeze(1), 0);
  }

  void add_gradients(std::int64_t row, const Tensor& x, const Tensor& logits_grad_nv) {
    const std::int64_t padding = weight_vc_.size(0) - chunking_.vocab_size;
    if (padding > 0) logits_grad_nv.narrow(1, chunking_.vocab_size, padding).zero_();
    Tensor x_grad = result_.x_grad.narrow(0, row, x.size(0));
    at::mm_out(x_grad, logits_grad_nv, weight_vc_);
    weight_sum_->add(logits_grad_nv, x);
  }

  const Tensor& x_nc_;
  const Tensor& weight_vc_;
  const Tensor& targets_n_;
  Chunking chunking_;
  at::ScalarType type_;
  Tensor inverse_count_, gradient_factor_;
  std::optional<WeightGradientSum> weight_sum_;
  LossResult result_;
};

struct ChunkedLossFunction : torch::autograd::Function<ChunkedLossFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x_nc, const Tensor& weight_vc,
                        const Tensor& targets_n, const Chunking& chunking) {
    const LossResult result = ChunkedLoss(x_nc, weight_vc, targets_n, chunking).run();
    loss_gradients::keep(context, result, chunking.scale);
    return result.loss;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const Tensor factor = loss_gradients::missing_factor(context, grads[0]);
    const auto take = [&](const char* name) {
      return loss_gradients::take(context, name, factor, "--loss-chunks 1");
    };
    return {take(loss_gradients::kInput), take(loss_gradients::kWeight), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor chunked_loss(const Tensor& x_nc, const Tensor& weight_vc, const Tensor& targets_n,
                    std::int64_t vocab_size, std::int64_t rows, const Tensor& scale) {
  return ChunkedLossFunction::apply(x_nc, weight_vc, targets_n,
                                    Chunking{.vocab_size = vocab_size,
                                             .rows = rows,
                                             .gradients = wanted_gradients(x_nc, weight_vc),
                                             .scale = scale});
}

}  // namespace sidestream::model::plain
