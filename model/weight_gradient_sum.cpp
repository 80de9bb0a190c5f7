#include "model/weight_gradient_sum.hpp"

#include <utility>

namespace sidestream::model {

using torch::Tensor;

WeightGradientSum::WeightGradientSum(const Tensor& weight_vc, LossChunks chunks, Tensor memory,
                                     Multiply multiply)
    : type_(weight_vc.scalar_type()), memory_(std::move(memory)), multiply_(std::move(multiply)) {
  const bool wide = chunks == LossChunks::kSeveral && weight_vc.element_size() < 4;
  sum_ = !wide && memory_.defined()
             ? std::exchange(memory_, Tensor())
             : at::empty_like(weight_vc, weight_vc.options().dtype(wide ? at::kFloat : type_));
}

void WeightGradientSum::add(const Tensor& logits_grad_nv, const Tensor& x_nc) {
  const Existing existing = std::exchange(empty_, false) ? Existing::kReplaced : Existing::kAddedTo;
  const Tensor logits_grad_vn = logits_grad_nv.t();
  if (multiply_ && multiply_(logits_grad_vn, x_nc, sum_, existing)) return;
  add_by_libtorch(logits_grad_vn, x_nc, existing);
}

// LibTorch's products leave fp32 on GPUs only; on the processor each chunk's is rounded once.
void WeightGradientSum::add_by_libtorch(const Tensor& logits_grad_vn, const Tensor& x_nc,
                                        Existing existing) {
  if (sum_.scalar_type() == type_) {
    existing == Existing::kReplaced ? at::mm_out(sum_, logits_grad_vn, x_nc)
                                    : sum_.addmm_(logits_grad_vn, x_nc);
    return;
  }
  if (existing == Existing::kReplaced) sum_.zero_();
  if (sum_.is_cuda())
    at::addmm_out(sum_, sum_, logits_grad_vn, x_nc, at::kFloat);
  else
    sum_.add_(at::mm(logits_grad_vn, x_nc));
}

Tensor WeightGradientSum::take() {
  Tensor sum = std::exchange(sum_, Tensor());
  return memory_.defined() ? std::exchange(memory_, Tensor()).copy_(sum) : sum.to(type_);
}

}  // namespace sidestream::model
