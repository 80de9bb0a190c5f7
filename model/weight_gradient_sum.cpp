#include "model/weight_gradient_sum.hpp"

#include <utility>

namespace sidestream::model {

using torch::Tensor;

WeightGradientSum::WeightGradientSum(const Tensor& weight_vc, LossChunks chunks, Tensor memory,
                                     AddProduct add_product)
    : type_(weight_vc.scalar_type()),
      memory_(std::move(memory)),
      add_product_(std::move(add_product)) {
  const bool wide = chunks == LossChunks::kSeveral && weight_vc.element_size() < 4;
  sum_ = !wide && memory_.defined()
             ? std::exchange(memory_, Tensor())
             : at::empty_like(weight_vc, weight_vc.options().dtype(wide ? at::kFloat : type_));
}

void WeightGradientSum::add(const Tensor& logits_grad_nv, const Tensor& x_nc) {
  const bool first = std::exchange(empty_, false);
  const Tensor logits_grad_vn = logits_grad_nv.t();
  if (sum_.scalar_type() == type_) {
    first ? at::mm_out(sum_, logits_grad_vn, x_nc) : sum_.addmm_(logits_grad_vn, x_nc);
    return;
  }
  if (first) sum_.zero_();
  add_wide(logits_grad_vn, x_nc);
}

// LibTorch's products leave fp32 on GPUs only; on the processor each chunk's is rounded once.
void WeightGradientSum::add_wide(const Tensor& logits_grad_vn, const Tensor& x_nc) {
  if (add_product_ && add_product_(logits_grad_vn, x_nc, sum_)) return;
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
