#include "model/kernels/epilogue.hpp"

#include "core/base/vectorize.hpp"
#include "model/kernels/lanes.hpp"
#include "model/kernels/prefetch.hpp"
#include "model/kernels/rounding.hpp"
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

SIDESTREAM_INLINE void store_row_of(const float* __restrict c, float* __restrict out,
                                    std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = c[i];
}
SIDESTREAM_INLINE void store_row_of(const float* c, BFloat16* out, std::int64_t n) {
  round_row(c, n, out);
}

template <typename T>
SIDESTREAM_INLINE void scale_row_of(const float* c, float factor, T* out, std::int64_t n) {
  compute_elements(
      out, n, [=](std::int64_t i) __attribute__((always_inline)) { return c[i] * factor; });
}

template <typename T>
SIDESTREAM_INLINE void add_row_of(const float* c, T* out, std::int64_t n) {
  compute_elements(
      out, n, [=](std::int64_t i) __attribute__((always_inline)) {
        return static_cast<float>(out[i]) + c[i];
      });
}

template <typename T>
SIDESTREAM_INLINE void bias_row_of(const float* c, const T* bias, T* out, std::int64_t n) {
  compute_elements(
      out, n, [=](std::int64_t i) __attribute__((always_inline)) {
        return c[i] + static_cast<float>(bias[i]);
      });
}

template <typename L, typename T>
SIDESTREAM_INLINE void gelu_row_of(const T* before, T* activation, std::int64_t n) {
  compute_row(
      activation,
      n, [=](float* target, std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
        for_vectors<L>(
            count, [=](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
              const typename L::Floats x = load_lanes<L>(before + first + i, lanes);
              store_lanes<L>(gelu_for<T>(x).value, lanes, target + i);
            });
      });
}

template <typename L, typename T>
SIDESTREAM_INLINE void gelu_backward_row_of(const float* c, const T* before, float* grad,
                                            float* activation, float* bias_grad, std::int64_t n) {
  using Floats = typename L::Floats;
  for_vectors<L>(
      n, [=](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Gelu<Floats> gelu = gelu_for<T>(load_lanes<L>(before + i, lanes));
        const Floats gradient = load_lanes<L>(c + i, lanes) * gelu.slope;
        store_lanes<L>(gelu.value, lanes, activation + i);
        store_lanes<L>(gradient, lanes, grad + i);
        store_lanes<L>(load_lanes<L>(bias_grad + i, lanes) + gradient, lanes, bias_grad + i);
      });
}

template <typename L>
SIDESTREAM_INLINE void gelu_backward_stretches(const float* c, const GeluBackwardRows<float>& at,
                                               std::int64_t n) {
  gelu_backward_row_of<L>(c, at.before.data, at.grad.data, at.activation.data, at.bias_grad, n);
}

template <typename L>
SIDESTREAM_INLINE void gelu_backward_stretches(const float* c, const GeluBackwardRows<BFloat16>& at,
                                               std::int64_t n) {
  alignas(64) float grad[kStretch], activation[kStretch];
  for (std::int64_t first = 0; first < n; first += kStretch) {
    const std::int64_t count = n - first < kStretch ? n - first : kStretch;
    gelu_backward_row_of<L>(c + first, at.before.data + first, grad, activation,
                            at.bias_grad + first, count);
    round_row(grad, count, at.grad.data + first);
    round_row(activation, count, at.activation.data + first);
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

struct BiasGelu {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const Tile& t, const T* bias, const GeluRows<T>& out) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      expect_row_of<Access::kWrite>(out.before, r + kRowsAhead, t);
      expect_row_of<Access::kWrite>(out.activation, r + kRowsAhead, t);
      T* before = out.before.data + r * out.before.stride;
      bias_row_of(t.data + r * t.stride, bias, before, t.columns);
      gelu_row_of<L>(before, out.activation.data + r * out.activation.stride, t.columns);
    }
  }
};

struct GeluBackward {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const Tile& t, const GeluBackwardRows<T>& rows) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      expect_row_of<Access::kRead>(rows.before, r + kRowsAhead, t);
      expect_row_of<Access::kWrite>(rows.grad, r + kRowsAhead, t);
      expect_row_of<Access::kWrite>(rows.activation, r + kRowsAhead, t);
      gelu_backward_stretches<L>(
          t.data + r * t.stride,
          GeluBackwardRows<T>{.before = {rows.before.data + r * rows.before.stride, 0},
                              .grad = {rows.grad.data + r * rows.grad.stride, 0},
                              .activation = {rows.activation.data + r * rows.activation.stride, 0},
                              .bias_grad = rows.bias_grad},
          t.columns);
    }
  }
};

template <typename T>
SIDESTREAM_INLINE void store_tile(const Tile& t, Rows<T> out) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    expect_row_of<Access::kWrite>(out, r + kRowsAhead, t);
    store_row_of(t.data + r * t.stride, out.data + r * out.stride, t.columns);
  }
}

template <typename T>
SIDESTREAM_INLINE void store_scaled_tile(const Tile& t, const float* factors, Rows<T> out) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    expect_row_of<Access::kWrite>(out, r + kRowsAhead, t);
    scale_row_of(t.data + r * t.stride, factors[r], out.data + r * out.stride, t.columns);
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

SIDESTREAM_VECTORIZED void store(const Tile& tile, Rows<float> out) { store_tile(tile, out); }
SIDESTREAM_VECTORIZED void store(const Tile& tile, Rows<BFloat16> out) { store_tile(tile, out); }

SIDESTREAM_VECTORIZED void add(const Tile& tile, Rows<float> out) { add_tile(tile, out); }
SIDESTREAM_VECTORIZED void add(const Tile& tile, Rows<BFloat16> out) { add_tile(tile, out); }

SIDESTREAM_VECTORIZED void store_scaled(const Tile& tile, const float* factors, Rows<float> out) {
  store_scaled_tile(tile, factors, out);
}
SIDESTREAM_VECTORIZED void store_scaled(const Tile& tile, const float* factors,
                                        Rows<BFloat16> out) {
  store_scaled_tile(tile, factors, out);
}

SIDESTREAM_VECTORIZED void store_with_bias(const Tile& tile, const float* bias, Rows<float> out) {
  bias_tile(tile, bias, out);
}
SIDESTREAM_VECTORIZED void store_with_bias(const Tile& tile, const BFloat16* bias,
                                           Rows<BFloat16> out) {
  bias_tile(tile, bias, out);
}

void store_with_bias_gelu(const Tile& tile, const float* bias, const GeluRows<float>& out) {
  run_in_lanes<BiasGelu>(tile, bias, out);
}
void store_with_bias_gelu(const Tile& tile, const BFloat16* bias, const GeluRows<BFloat16>& out) {
  run_in_lanes<BiasGelu>(tile, bias, out);
}

void gelu_backward(const Tile& tile, const GeluBackwardRows<float>& rows) {
  run_in_lanes<GeluBackward>(tile, rows);
}
void gelu_backward(const Tile& tile, const GeluBackwardRows<BFloat16>& rows) {
  run_in_lanes<GeluBackward>(tile, rows);
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
