#include "model/kernels/epilogue.hpp"

#include "core/base/vectorize.hpp"
#include "model/kernels/lanes.hpp"
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

// The gradient of what came before GELU and the activation again, of a row.
template <typename L, typename T>
SIDESTREAM_INLINE void gelu_backward_row(const float* c, const GeluBackwardRows<T>& at,
                                         std::int64_t n) {
  using Floats = typename L::Floats;
  for_vectors<L>(
      n, [=](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Gelu<Floats> gelu = gelu_for<T>(load_lanes<L>(at.before.data + i, lanes));
        const Floats gradient = load_lanes<L>(c + i, lanes) * gelu.slope;
        const Floats sum = load_lanes<L>(at.bias_grad + i, lanes) + gradient;
        store_lanes<L>(gelu.value, lanes, at.activation.data + i);
        store_lanes<L>(gradient, lanes, at.grad.data + i);
        store_lanes<L>(sum, lanes, at.bias_grad + i);
      });
}

template <typename T>
SIDESTREAM_INLINE void add_sums_of(Rows<const T> x, std::int64_t rows, std::int64_t n,
                                   float* __restrict sums) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* __restrict row = x.data + r * x.stride;
    for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<float>(row[i]);
  }
}

// out[r][i] = element(r, i, lanes) of the tile's rows.
template <typename L, typename T, typename Element>
SIDESTREAM_INLINE void compute_rows(const Tile& t, const Rows<T>& out, Element element) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    expect_row_of<Access::kWrite>(out, r + kRowsAhead, t);
    expect_later(t.ahead, r);
    const float* c = t.data + r * t.stride;
    compute_lanes<L>(
        out.data + r * out.stride,
        t.columns, [=](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
          return element(r, i, load_lanes<L>(c + i, lanes), lanes);
        });
  }
}

struct Store {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const Tile& t, const Rows<T>& out) {
    using Floats = typename L::Floats;
    compute_rows<L>(
        t, out,
        [](std::int64_t, std::int64_t, const Floats& c, std::int64_t)
            __attribute__((always_inline)) { return c; });
  }
};

// Lines are written whole, two vectors at a time.
struct StorePastCaches {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const Tile& t, const Rows<T>& out) {
    constexpr std::int64_t kStep = 2 * L::kCount;
    for (std::int64_t r = 0; r < t.rows; ++r) {
      expect_later(t.ahead, r);
      const float* c = t.data + r * t.stride;
      T* row = out.data + r * out.stride;
      for (std::int64_t i = 0; i < t.columns; i += kStep)
        stream_lines<L>(load_lanes<L>(c + i), load_lanes<L>(c + i + L::kCount), row + i);
    }
  }
};

struct Add {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const Tile& t, const Rows<T>& out) {
    using Floats = typename L::Floats;
    compute_rows<L>(
        t, out,
        [=](std::int64_t r, std::int64_t i, const Floats& c, std::int64_t lanes)
            __attribute__((always_inline)) {
              return Floats(load_lanes<L>(out.data + r * out.stride + i, lanes) + c);
            });
  }
};

struct StoreScaled {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const Tile& t, const float* const& factors,
                                    const Rows<T>& out) {
    using Floats = typename L::Floats;
    compute_rows<L>(
        t, out,
        [=](std::int64_t r, std::int64_t, const Floats& c, std::int64_t)
            __attribute__((always_inline)) { return Floats(c * factors[r]); });
  }
};

struct StoreWithBias {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const Tile& t, const T* const& bias, const Rows<T>& out) {
    using Floats = typename L::Floats;
    compute_rows<L>(
        t, out,
        [=](std::int64_t, std::int64_t i, const Floats& c, std::int64_t lanes)
            __attribute__((always_inline)) { return Floats(c + load_lanes<L>(bias + i, lanes)); });
  }
};

struct BiasGelu {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const Tile& t, const T* const& bias, const GeluRows<T>& out) {
    using Floats = typename L::Floats;
    for (std::int64_t r = 0; r < t.rows; ++r) {
      expect_row_of<Access::kWrite>(out.before, r + kRowsAhead, t);
      expect_row_of<Access::kWrite>(out.activation, r + kRowsAhead, t);
      expect_later(t.ahead, r);
      const float* c = t.data + r * t.stride;
      T* before = out.before.data + r * out.before.stride;
      T* activation = out.activation.data + r * out.activation.stride;
      for_vectors<L>(
          t.columns, [=](std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
            const Floats sum = load_lanes<L>(c + i, lanes) + load_lanes<L>(bias + i, lanes);
            store_lanes<L>(sum, lanes, before + i);
            store_lanes<L>(gelu_for<T>(as_stored<L, T>(sum)).value, lanes, activation + i);
          });
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
      expect_later(t.ahead, r);
      gelu_backward_row<L>(
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
bool are_whole_lines(const Tile& tile, const Rows<T>& out) {
  constexpr std::int64_t kLine = 64, kBytes = sizeof(T);
  return begin_at_lines(out) && tile.columns * kBytes % kLine == 0;
}

}  // namespace

void store(const Tile& tile, Rows<float> out) { run_in_lanes<Store>(tile, out); }
void store(const Tile& tile, Rows<BFloat16> out) { run_in_lanes<Store>(tile, out); }

void store_past_caches(const Tile& tile, Rows<float> out) {
  constexpr std::int64_t kStep = 2 * SixteenLanes::kCount;
  if (!are_whole_lines(tile, out) || tile.columns % kStep != 0 || !has_avx2())
    return store(tile, out);
  has_avx512() ? in_sixteen_lanes<StorePastCaches>(tile, out)
               : in_eight_lanes<StorePastCaches>(tile, out);
}
void store_past_caches(const Tile& tile, Rows<BFloat16> out) {
  if (are_whole_lines(tile, out) && has_avx512_bf16())
    return in_rounding_lanes<StorePastCaches>(tile, out);
  store(tile, out);
}

void finish_stores_past_caches() { finish_streams(); }

void add(const Tile& tile, Rows<float> out) { run_in_lanes<Add>(tile, out); }
void add(const Tile& tile, Rows<BFloat16> out) { run_in_lanes<Add>(tile, out); }

void store_scaled(const Tile& tile, const float* factors, Rows<float> out) {
  run_in_lanes<StoreScaled>(tile, factors, out);
}
void store_scaled(const Tile& tile, const float* factors, Rows<BFloat16> out) {
  run_in_lanes<StoreScaled>(tile, factors, out);
}

void store_with_bias(const Tile& tile, const float* bias, Rows<float> out) {
  run_in_lanes<StoreWithBias>(tile, bias, out);
}
void store_with_bias(const Tile& tile, const BFloat16* bias, Rows<BFloat16> out) {
  run_in_lanes<StoreWithBias>(tile, bias, out);
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
