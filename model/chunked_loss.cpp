#include "model/chunked_loss.hpp"

#include <algorithm>
#include <utility>

namespace sidestream::model::plain {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr std::int64_t kIgnored = -100;  // as at::cross_entropy_loss has it by default

enum class Gradients { kNo, kYes };

struct Chunking {
  std::int64_t vocab_size, rows;
  Gradients gradients;
  Tensor scale;
};

struct Result {
  Tensor loss, x_grad, weight_grad;
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
        inverse_count_(targets_n.ne(kIgnored).sum().to(type_).reciprocal()),
        gradient_factor_(chunking.scale.defined() ? inverse_count_ * chunking.scale
                                                  : inverse_count_) {
    if (chunking_.gradients == Gradients::kNo) return;
    result_.x_grad = at::empty_like(x_nc);
    result_.weight_grad = at::empty_like(weight_vc);
  }

  // Nothing waits for the device: sums and count stay there.
  Result run() {
    Tensor sum = at::zeros({}, x_nc_.options().dtype(type_));
    for (std::int64_t row = 0; row < x_nc_.size(0); row += chunking_.rows)
      sum.add_(loss_of(row, std::min(chunking_.rows, x_nc_.size(0) - row)));
    result_.loss = sum.mul_(inverse_count_);
    return result_;
  }

 private:
  // The sum over the rows of a chunk.
  Tensor loss_of(std::int64_t row, std::int64_t rows) {
    const Tensor x = x_nc_.narrow(0, row, rows), targets = targets_n_.narrow(0, row, rows);
    Tensor logits_nv = at::mm(x, weight_vc_.t());
    Tensor log_probabilities =
        at::log_softmax(logits_nv.narrow(1, 0, chunking_.vocab_size), 1, type_);
    Tensor loss = at::nll_loss(log_probabilities, targets, {}, at::Reduction::Sum, kIgnored);
    if (chunking_.gradients == Gradients::kYes) {
      logits_nv.narrow(1, 0, chunking_.vocab_size)
          .copy_(logits_gradient(std::move(log_probabilities), targets));
      add_gradients(row, x, logits_nv);
    }
    return loss;
  }

  // (softmax - 1 at the target) * scale / count, in the memory of the log-probabilities.
  Tensor logits_gradient(Tensor log_probabilities, const Tensor& targets) const {
    const Tensor ignored = targets.eq(kIgnored);
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
    if (row == 0)
      at::mm_out(result_.weight_grad, logits_grad_nv.t(), x);
    else
      result_.weight_grad.addmm_(logits_grad_nv.t(), x);
  }

  const Tensor& x_nc_;
  const Tensor& weight_vc_;
  const Tensor& targets_n_;
  Chunking chunking_;
  at::ScalarType type_;
  Tensor inverse_count_, gradient_factor_;
  Result result_;
};

// On the host a pass over both gradients is saved where the loss is differentiated as it is.
Tensor scaled(Tensor gradient, const Tensor& factor) {
  if (factor.is_cpu() && factor.item<double>() == 1) return gradient;
  return gradient.mul_(factor);
}

constexpr const char *kInputGradient = "x_grad", *kWeightGradient = "weight_grad",
                     *kScale = "scale";

// Autograd takes a gradient over without a copy only where nobody else holds it.
Tensor take(AutogradContext* context, const char* name) {
  const auto entry = context->saved_data.find(name);
  TORCH_CHECK(entry != context->saved_data.end(),
              "a loss in chunks can be differentiated once; --loss-chunks 1 has no such limit");
  Tensor gradient = entry->second.toTensor();
  context->saved_data.erase(entry);
  return gradient;
}

struct ChunkedLossFunction : torch::autograd::Function<ChunkedLossFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x_nc, const Tensor& weight_vc,
                        const Tensor& targets_n, const Chunking& chunking) {
    const Result result = ChunkedLoss(x_nc, weight_vc, targets_n, chunking).run();
    if (chunking.gradients == Gradients::kYes) {
      context->saved_data[kInputGradient] = result.x_grad;
      context->saved_data[kWeightGradient] = result.weight_grad;
      if (chunking.scale.defined()) context->saved_data[kScale] = chunking.scale;
    }
    return result.loss;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto scale = context->saved_data.find(kScale);
    const bool has_scale = scale != context->saved_data.end();
    const Tensor factor = missing_factor(grads[0], has_scale ? scale->second.toTensor() : Tensor());
    return {scaled(take(context, kInputGradient), factor),
            scaled(take(context, kWeightGradient), factor), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor chunked_loss(const Tensor& x_nc, const Tensor& weight_vc, const Tensor& targets_n,
                    std::int64_t vocab_size, std::int64_t rows, const Tensor& scale) {
  const bool wanted =
      at::GradMode::is_enabled() && (x_nc.requires_grad() || weight_vc.requires_grad());
  return ChunkedLossFunction::apply(x_nc, weight_vc, targets_n,
                                    Chunking{.vocab_size = vocab_size,
                                             .rows = rows,
                                             .gradients = wanted ? Gradients::kYes : Gradients::kNo,
                                             .scale = scale});
}

}  // namespace sidestream::model::plain
