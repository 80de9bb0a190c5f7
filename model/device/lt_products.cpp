#include "model/device/lt_products.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

LtMatrix matrix_of(const Tensor& row_major) {
  return {.memory = row_major.data_ptr(),
          .dtype = row_major.scalar_type(),
          .rows = row_major.size(1),
          .columns = row_major.size(0),
          .stride = row_major.stride(0)};
}

LtOperand operand_of(const Tensor& matrix) {
  if (matrix.stride(1) == 1) return {.matrix = matrix_of(matrix), .transposed = false};
  return {.matrix = matrix_of(matrix.t()), .transposed = true};
}

LtProduct product_of(const Tensor& left, const Tensor& right, const Tensor& out) {
  return {.first = operand_of(right), .second = operand_of(left), .out = matrix_of(out)};
}

}  // namespace

void LtProducts::multiply(const Tensor& left, const Tensor& right, const Tensor& out) const {
  run(product_of(left, right, out), out);
}

void LtProducts::add(const Tensor& left, const Tensor& right, const Tensor& sum) const {
  LtProduct product = product_of(left, right, sum);
  product.added = true;
  run(product, sum);
}

void LtProducts::with_bias(const Tensor& x_rc, const Tensor& weight_ch, const Tensor& bias_h,
                           const Tensor& out_rh) const {
  LtProduct product = product_of(x_rc, weight_ch, out_rh);
  product.bias = bias_h.data_ptr();
  run(product, out_rh);
}

}  // namespace sidestream::model::device
