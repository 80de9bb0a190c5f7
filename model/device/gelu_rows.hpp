// GELU (tanh form, Hendrycks and Gimpel 2016) over plain arrays, and its backward with the sums
// that the gradient of a bias needs.
#pragma once

#include <cstdint>

#include "model/device/block.hpp"
#include "model/device/fast_math.hpp"
#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"
#include "model/device/mapped_chunk.hpp"

namespace sidestream::model::device {

// x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), and its derivative. (1 + tanh(u)) /
// 2 is the logistic function of 2 u, which loses no digits where tanh is near -1.
struct Gelu {
  float value, slope;
};
SIDESTREAM_INLINE Gelu gelu_of(float x) {
  constexpr float kTwiceRootTwoOverPi = 1.5957691216057308f, kCubic = 0.044715f;
  constexpr float kExponent = -kTwiceRootTwoOverPi * kLogTwoOfE;  // e to the -2 u as a power of two
  const float square = x * x;
  const float logistic =
      reciprocal(1.0f + power_of_two(x * (kExponent + kExponent * kCubic * square)));
  const float inner_slope = kTwiceRootTwoOverPi + 3.0f * kTwiceRootTwoOverPi * kCubic * square;
  const float value = x * logistic;
  return {value, logistic + value * (1.0f - logistic) * inner_slope};
}

template <typename T>
struct GeluForwardRange {
  const T* before;
  T* activation;
  std::int64_t count;
};

template <Access kAccess, typename T>
SIDESTREAM_KERNEL void gelu_forward_chunk(const GeluForwardRange<T>& range, std::int64_t index) {
  map_chunk<kAccess>(range.before, range.activation, range.count, index,
                     [](float x) { return gelu_of(x).value; });
}

// The gradient of the activation becomes that of what came before GELU, in place; the activation is
// computed again where it was not kept.
template <typename T>
struct GeluBackwardRows {
  const T* before;
  T* gradient;
  T* activation;        // null: it was kept
  float* bias_partial;  // [parts, width]: sums over the rows of each part
  std::int64_t rows;
  std::int64_t width;
};

// Rows of which a thread has the loads under way at once.
constexpr int kGeluRowsAhead = 2;

// Part `part` of `parts` takes the rows part, part + parts, ...; tile t of a block's columns begins
// at t * threads * kChunk.
template <Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void gelu_backward_tile(Block& block, const GeluBackwardRows<T>& rows,
                                          std::int64_t tile, std::int64_t part,
                                          std::int64_t parts) {
  using Held = HeldRow<T, kChunk<T>, kAccess>;
  const std::int64_t first = tile * block.threads() * kChunk<T>;
  block.each([&](int thread) {
    const Share share{thread, block.threads(), rows.width - first};
    const auto place = [&](std::int64_t row) { return row * rows.width + first; };
    Held sums;
    sums.clear();
    for (std::int64_t row = part; row < rows.rows; row += kGeluRowsAhead * parts) {
      Held value[kGeluRowsAhead], gradient[kGeluRowsAhead];
      for (int r = 0; r < kGeluRowsAhead; ++r) {
        if (row + r * parts >= rows.rows) break;
        value[r].load(rows.before + place(row + r * parts), share);
        gradient[r].load(rows.gradient + place(row + r * parts), share);
      }
      for (int r = 0; r < kGeluRowsAhead; ++r) {
        if (row + r * parts >= rows.rows) break;
        for (int i = 0; i < kChunk<T>; ++i) {
          const Gelu gelu = gelu_of(value[r].at[i]);
          value[r].at[i] = gelu.value;
          gradient[r].at[i] *= gelu.slope;
          sums.at[i] += gradient[r].at[i];
        }
        if (rows.activation != nullptr)
          value[r].store(rows.activation + place(row + r * parts), share);
        gradient[r].store(rows.gradient + place(row + r * parts), share);
      }
    }
    sums.store_wide(rows.bias_partial + part * rows.width + first, share);
  });
}

}  // namespace sidestream::model::device
