#include "model/fused/linear_products.hpp"

#include <ATen/Parallel.h>

#include "model/fused/column_sums.hpp"
#include "model/fused/gradient_place.hpp"

namespace sidestream::model::fused {

using torch::Tensor;

Tensor empty_rows(const Tensor& x, std::int64_t last) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = last;
  return at::empty(shape, x.options());
}

template <typename T>
Tensor input_gradient(const Tensor& dy, const Tensor& weight) {
  const Matrix<T> y(dy), w(weight);
  Tensor dx = empty_rows(dy, w.rows);
  product_into<T>({.m = y.rows, .n = w.rows, .k = w.columns}, {.data = y.data, .stride = y.columns},
                  {.data = w.data, .stride = w.columns, .orientation = Orientation::kTransposed},
                  kernels::Rows<T>{data_of<T>(dx), w.rows});
  return dx;
}

template <typename T>
Tensor weight_gradient(const Tensor& x_tensor, const Tensor& dy, Tensor memory) {
  const Matrix<T> x(x_tensor), y(dy);
  Tensor dw = or_empty(std::move(memory), {x.columns, y.columns}, dy.options());
  product_into<T>({.m = x.columns, .n = y.columns, .k = x.rows},
                  {.data = x.data, .stride = x.columns, .orientation = Orientation::kTransposed},
                  {.data = y.data, .stride = y.columns},
                  kernels::Rows<T>{data_of<T>(dw), y.columns}, Existing::kReplace,
                  NextRead::kLater);
  return dw;
}

template <typename T>
Tensor bias_gradient(const Tensor& dy) {
  const Matrix<T> y(dy);
  const ColumnSums sums(y.rows, y.columns);
  constexpr std::int64_t kColumnsPerThread = 256;
  at::parallel_for(0, y.columns, kColumnsPerThread, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t columns = end - begin;
    sums.add({.row = 0, .column = begin}, {.rows = y.rows, .columns = columns},
             [&](std::int64_t row, std::int64_t rows, float* out) {
               kernels::add_column_sums(
                   kernels::Rows<const T>{y.data + row * y.columns + begin, y.columns}, rows,
                   columns, out);
             });
  });
  return rounded(sums.sums(), dy.scalar_type());
}

Tensor rounded(const Tensor& sums, at::ScalarType dtype) {
  return sums.scalar_type() == dtype ? sums : sums.to(dtype);
}

template Tensor input_gradient<float>(const Tensor&, const Tensor&);
template Tensor input_gradient<core::BFloat16>(const Tensor&, const Tensor&);
template Tensor weight_gradient<float>(const Tensor&, const Tensor&, Tensor);
template Tensor weight_gradient<core::BFloat16>(const Tensor&, const Tensor&, Tensor);
template Tensor bias_gradient<float>(const Tensor&);
template Tensor bias_gradient<core::BFloat16>(const Tensor&);

}  // namespace sidestream::model::fused
