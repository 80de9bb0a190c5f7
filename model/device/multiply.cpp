#include "model/device/multiply.hpp"

#include "model/fused/recorded.hpp"

namespace sidestream::model::device {

using fused::Inputs;
using torch::Tensor;

bool own_product(const LaunchQueue& queue, const Tensor& left, const Tensor& right,
                 const Tensor& out) {
  if (!queue.products || !Products::take_plain(left, right, out)) return false;
  RECORD_FUNCTION("sidestream::product", Inputs({left, right}));
  queue.products->multiply(left, right, out);
  return true;
}

bool own_product_added(const LaunchQueue& queue, const Tensor& left, const Tensor& right,
                       const Tensor& sum) {
  if (!queue.products || !Products::take_plain(left, right, sum)) return false;
  RECORD_FUNCTION("sidestream::product_sum", Inputs({left, right, sum}));
  queue.products->add(left, right, sum);
  return true;
}

void multiply_into(const LaunchQueue& queue, const Tensor& out, const Tensor& left,
                   const Tensor& right) {
  if (own_product(queue, left, right, out)) return;
  Tensor result = out;
  at::mm_out(result, left, right);
}

// Memory that LibTorch makes for itself is not filled first with --deterministic.
Tensor multiply(const LaunchQueue& queue, const Tensor& left, const Tensor& right) {
  if (!queue.products) return at::mm(left, right);
  const Tensor out = at::empty({left.size(0), right.size(1)}, left.options());
  multiply_into(queue, out, left, right);
  return out;
}

Tensor product_into(const LaunchQueue& queue, Tensor memory, const Tensor& left,
                    const Tensor& right) {
  if (!memory.defined()) return multiply(queue, left, right);
  multiply_into(queue, memory, left, right);
  return memory;
}

Tensor multiply_with_bias(const LaunchQueue& queue, const Tensor& x_rc,
                          const LinearWeights& weights) {
  if (!queue.products || !Products::take_with_bias(x_rc, weights))
    return at::addmm(weights.bias, x_rc, weights.weight);
  const Tensor out = at::empty({x_rc.size(0), weights.weight.size(1)}, x_rc.options());
  RECORD_FUNCTION("sidestream::bias_product", Inputs({x_rc, weights.weight}));
  queue.products->with_bias(x_rc, weights.weight, weights.bias, out);
  return out;
}

}  // namespace sidestream::model::device
