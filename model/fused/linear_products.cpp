#include "model/fused/linear_products.hpp"

#include <ATen/Parallel.h>

namespace sidestream::model::fused {

using kernels::Tile;
using torch::Tensor;

Tensor empty_rows(const Tensor& x, std::int64_t last) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = last;
  return at::empty(shape, x.options());
}

namespace {

Tensor as_rows(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

template <typename T>
Tensor blocked_input_gradient(const Tensor& dy, const Tensor& weight) {
  const Matrix<T> y(dy), w(weight);
  Tensor dx = empty_rows(dy, w.rows);
  T* out = data_of<T>(dx);
  product<T>({.m = y.rows, .n = w.rows, .k = w.columns}, {.data = y.data, .stride = y.columns},
             {.data = w.data, .stride = w.columns, .orientation = Orientation::kTransposed},
             [&](const Tile& tile, TilePlace at) {
               kernels::store(tile, kernels::Rows<T>{out + at.row * w.rows + at.column, w.rows});
             });
  return dx;
}

template <typename T>
Tensor blocked_weight_gradient(const Tensor& x_tensor, const Tensor& dy) {
  const Matrix<T> x(x_tensor), y(dy);
  Tensor dw = at::empty({x.columns, y.columns}, dy.options());
  T* out = data_of<T>(dw);
  const Transposed xt = transposed_left<T>(x.data, x.columns, x.rows, x.columns);
  product<T>(
      {.m = x.columns, .n = y.columns, .k = x.rows},
      {.data = data_of<T>(xt.storage), .stride = xt.stride}, {.data = y.data, .stride = y.columns},
      [&](const Tile& tile, TilePlace at) {
        kernels::store(tile, kernels::Rows<T>{out + at.row * y.columns + at.column, y.columns});
      });
  return dw;
}

}  // namespace

// Where nothing is done with the tiles, the BLAS of LibTorch packs fp32 better than we do; bf16 is the other way round.
template <>
Tensor input_gradient<float>(const Tensor& dy, const Tensor& weight) {
  std::vector<std::int64_t> shape = dy.sizes().vec();
  shape.back() = weight.size(0);
  return at::mm(as_rows(dy), weight.t()).view(shape);
}

template <>
Tensor input_gradient<core::BFloat16>(const Tensor& dy, const Tensor& weight) {
  return blocked_input_gradient<core::BFloat16>(dy, weight);
}

template <>
Tensor weight_gradient<float>(const Tensor& x, const Tensor& dy) {
  return at::mm(as_rows(x).t(), as_rows(dy));
}

template <>
Tensor weight_gradient<core::BFloat16>(const Tensor& x, const Tensor& dy) {
  return blocked_weight_gradient<core::BFloat16>(x, dy);
}

template <typename T>
Tensor bias_gradient(const Tensor& dy) {
  const Matrix<T> y(dy);
  const Tensor sums = at::zeros({y.columns}, at::kFloat);
  float* out = data_of<float>(sums);
  constexpr std::int64_t kColumnsPerThread = 256;
  at::parallel_for(0, y.columns, kColumnsPerThread, [&](std::int64_t begin, std::int64_t end) {
    kernels::add_column_sums(kernels::Rows<const T>{y.data + begin, y.columns}, y.rows, end - begin,
                             out + begin);
  });
  return rounded(sums, dy.scalar_type());
}

Tensor rounded(const Tensor& sums, at::ScalarType dtype) {
  return sums.scalar_type() == dtype ? sums : sums.to(dtype);
}

template Tensor bias_gradient<float>(const Tensor&);
template Tensor bias_gradient<core::BFloat16>(const Tensor&);

}  // namespace sidestream::model::fused
