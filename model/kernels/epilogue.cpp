#include "model/kernels/epilogue.hpp"

#include "core/base/vectorize.hpp"
#include "model/kernels/prefetch.hpp"
#include "model/kernels/simd_math.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

constexpr std::int64_t kRowsAhead = 2;

template <Access access, typename T>
SIDESTREAM_INLINE void expect_row_of(Rows<T> rows, std::int64_t row, const Tile& t) {
  if (row >= t.rows) return;
  expect_row<access>(rows.data + row * rows.stride, t.columns * std::int64_t{sizeof(T)});
}

// One row at a time, so that the compiler sees plain loops over arrays that do not overlap.

template <typename T>
SIDESTREAM_INLINE void store_row_of(const float* __restrict c, float factor, T* __restrict out,
                                    std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = T(c[i] * factor);
}

template <typename T>
SIDESTREAM_INLINE void add_row_of(const float* __restrict c, T* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = T(static_cast<float>(out[i]) + c[i]);
}

template <typename T>
SIDESTREAM_INLINE void bias_row_of(const float* __restrict c, const T* __restrict bias,
                                   T* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = T(c[i] + static_cast<float>(bias[i]));
}

template <typename T>
SIDESTREAM_INLINE void gelu_row_of(const float* __restrict c, const T* __restrict bias,
                                   T* __restrict before, T* __restrict activation, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = c[i] + static_cast<float>(bias[i]);
    before[i] = T(sum);
    activation[i] = T(gelu_of(static_cast<float>(T(sum))).value);
  }
}

template <typename T>
SIDESTREAM_INLINE void gelu_backward_row_of(const float* __restrict c, const T* __restrict before,
                                            T* __restrict grad, T* __restrict activation,
                                            float* __restrict bias_grad, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Gelu gelu = gelu_of(static_cast<float>(before[i]));
    const float gradient = c[i] * gelu.slope;
    activation[i] = T(gelu.value);
    grad[i] = T(gradient);
    bias_grad[i] += gradient;
  }
}

template <typename T>
SIDESTREAM_INLINE void add_sums_of(Rows<const T> x, std::int64_t rows, std::int64_t n,
                                   float* __restrict sums) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* __restrict row = x.data + r * x.stride;
    for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<float>(row[i]);
  }
}

template <typename T>
SIDESTREAM_INLINE void gelu_of_tile(const Tile& t, const T* bias, const GeluRows<T>& out) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    expect_row_of<Access::kWrite>(out.before, r + kRowsAhead, t);
    expect_row_of<Access::kWrite>(out.activation, r + kRowsAhead, t);
    gelu_row_of(t.data + r * t.stride, bias, out.before.data + r * out.before.stride,
                out.activation.data + r * out.activation.stride, t.columns);
  }
}

template <typename T>
SIDESTREAM_INLINE void gelu_backward_of_tile(const Tile& t, const GeluBackwardRows<T>& rows) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    expect_row_of<Access::kRead>(rows.before, r + kRowsAhead, t);
    expect_row_of<Access::kWrite>(rows.grad, r + kRowsAhead, t);
    expect_row_of<Access::kWrite>(rows.activation, r + kRowsAhead, t);
    gelu_backward_row_of(t.data + r * t.stride, rows.before.data + r * rows.before.stride,
                         rows.grad.data + r * rows.grad.stride,
                         rows.activation.data + r * rows.activation.stride, rows.bias_grad,
                         t.columns);
  }
}

template <typename T>
SIDESTREAM_INLINE void store_tile(const Tile& t, const float* factors, Rows<T> out) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float factor = factors == nullptr ? 1.0f : factors[r];
    expect_row_of<Access::kWrite>(out, r + kRowsAhead, t);
    store_row_of(t.data + r * t.stride, factor, out.data + r * out.stride, t.columns);
  }
}

template <typename T>
SIDESTREAM_INLINE void add_tile(const Tile& t, Rows<T> out) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    expect_row_of<Access::kWrite>(out, r + kRowsAhead, t);
    add_row_of(t.data + r * t.stride, out.data + r * out.stride, t.columns);
  }
}

template <typename T>
SIDESTREAM_INLINE void bias_tile(const Tile& t, const T* bias, Rows<T> out) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    expect_row_of<Access::kWrite>(out, r + kRowsAhead, t);
    bias_row_of(t.data + r * t.stride, bias, out.data + r * out.stride, t.columns);
  }
}

}  // namespace

SIDESTREAM_VECTORIZED void store(const Tile& tile, Rows<float> out) {
  store_tile(tile, nullptr, out);
}
SIDESTREAM_VECTORIZED void store(const Tile& tile, Rows<BFloat16> out) {
  store_tile(tile, nullptr, out);
}

SIDESTREAM_VECTORIZED void add(const Tile& tile, Rows<float> out) { add_tile(tile, out); }
SIDESTREAM_VECTORIZED void add(const Tile& tile, Rows<BFloat16> out) { add_tile(tile, out); }

SIDESTREAM_VECTORIZED void store_scaled(const Tile& tile, const float* factors, Rows<float> out) {
  store_tile(tile, factors, out);
}
SIDESTREAM_VECTORIZED void store_scaled(const Tile& tile, const float* factors,
                                        Rows<BFloat16> out) {
  store_tile(tile, factors, out);
}

SIDESTREAM_VECTORIZED void store_with_bias(const Tile& tile, const float* bias, Rows<float> out) {
  bias_tile(tile, bias, out);
}
SIDESTREAM_VECTORIZED void store_with_bias(const Tile& tile, const BFloat16* bias,
                                           Rows<BFloat16> out) {
  bias_tile(tile, bias, out);
}

SIDESTREAM_VECTORIZED void store_with_bias_gelu(const Tile& tile, const float* bias,
                                                const GeluRows<float>& out) {
  gelu_of_tile(tile, bias, out);
}
SIDESTREAM_VECTORIZED void store_with_bias_gelu(const Tile& tile, const BFloat16* bias,
                                                const GeluRows<BFloat16>& out) {
  gelu_of_tile(tile, bias, out);
}

SIDESTREAM_VECTORIZED void gelu_backward(const Tile& tile, const GeluBackwardRows<float>& rows) {
  gelu_backward_of_tile(tile, rows);
}
SIDESTREAM_VECTORIZED void gelu_backward(const Tile& tile, const GeluBackwardRows<BFloat16>& rows) {
  gelu_backward_of_tile(tile, rows);
}

SIDESTREAM_VECTORIZED void add_column_sums(Rows<const float> x, std::int64_t rows,
                                           std::int64_t columns, float* sums) {
  add_sums_of(x, rows, columns, sums);
}
SIDESTREAM_VECTORIZED void add_column_sums(Rows<const BFloat16> x, std::int64_t rows,
                                           std::int64_t columns, float* sums) {
  add_sums_of(x, rows, columns, sums);
}

}  // namespace sidestream::model::kernels
