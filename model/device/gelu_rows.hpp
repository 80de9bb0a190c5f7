// GELU (tanh form, Hendrycks and Gimpel 2016) over plain arrays, its backward with the sums that
// the gradient of a bias needs, and the second stage of such sums.
#pragma once

#include <cmath>
#include <cstdint>

#include "model/device/block.hpp"
#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

// x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), and its derivative. (1 + tanh(u)) /
// 2 is the logistic function of 2 u, which loses no digits where tanh is near -1.
struct Gelu {
  float value, slope;
};
SIDESTREAM_INLINE Gelu gelu_of(float x) {
  constexpr float kTwiceRootTwoOverPi = 1.5957691216057308f, kCubic = 0.044715f;
  const float square = x * x;
  const float logistic = 1.0f / (1.0f + expf(-kTwiceRootTwoOverPi * x * (1.0f + kCubic * square)));
  const float inner_slope = kTwiceRootTwoOverPi * (1.0f + 3.0f * kCubic * square);
  return {x * logistic, logistic + x * logistic * (1.0f - logistic) * inner_slope};
}

template <typename T>
struct GeluForwardRange {
  const T* before;
  T* activation;
  std::int64_t count;
};

// Elements [index * kChunk, (index + 1) * kChunk) below count. With Access::kVector the last ones,
// too few for a chunk, go one by one.
template <Access kAccess, typename T>
SIDESTREAM_KERNEL void gelu_forward_chunk(const GeluForwardRange<T>& range, std::int64_t index) {
  const Share share{.thread = 0, .threads = 1, .width = range.count - index * kChunk<T>};
  if constexpr (kAccess == Access::kVector) {
    if (share.width < kChunk<T>) return gelu_forward_chunk<Access::kElement>(range, index);
  }
  HeldRow<T, kChunk<T>, kAccess> held;
  held.load(range.before + index * kChunk<T>, share);
  for (float& value : held.at) value = gelu_of(value).value;
  held.store(range.activation + index * kChunk<T>, share);
}

// The gradient of the activation becomes that of what came before GELU, in place; the activation,
// which was not kept, is computed again.
template <typename T>
struct GeluBackwardRows {
  const T* before;
  T* gradient;
  T* activation;
  float* bias_partial;  // [parts, width]: sums over the rows of each part
  std::int64_t rows;
  std::int64_t width;
};

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
    Held sums;
    sums.clear();
    for (std::int64_t row = part; row < rows.rows; row += parts) {
      const std::int64_t at = row * rows.width + first;
      Held value, gradient;
      value.load(rows.before + at, share);
      gradient.load(rows.gradient + at, share);
      for (int i = 0; i < kChunk<T>; ++i) {
        const Gelu gelu = gelu_of(value.at[i]);
        value.at[i] = gelu.value;
        gradient.at[i] *= gelu.slope;
        sums.at[i] += gradient.at[i];
      }
      value.store(rows.activation + at, share);
      gradient.store(rows.gradient + at, share);
    }
    sums.store_wide(rows.bias_partial + part * rows.width + first, share);
  });
}

// first[column] = sum over parts of partial[0][part][column], second that of partial[1]: the other
// stage of a sum over rows. Neither has atomics: the order of the additions is fixed.
template <typename T>
struct ColumnSums {
  const float* partial;  // [1 or 2, parts, width]
  T* first;
  T* second;  // null: one set only
  std::int64_t parts;
  std::int64_t width;
};

// Columns tile * kWarp and on, one a lane.
template <typename T, typename Block>
SIDESTREAM_KERNEL void column_sums_tile(Block& block, const ColumnSums<T>& sums, std::int64_t tile,
                                        int set) {
  const auto column_of = [&](int lane) { return tile * kWarp + lane; };
  const auto add_parts = [&](int thread) {
    const std::int64_t column = column_of(thread % kWarp);
    float total = 0;
    if (column >= sums.width) return total;
    const int warps = block.threads() / kWarp;
    for (std::int64_t part = thread / kWarp; part < sums.parts; part += warps)
      total += sums.partial[(set * sums.parts + part) * sums.width + column];
    return total;
  };
  block.lane_sums(add_parts, [&](int lane, float sum) {
    T* out = set == 0 ? sums.first : sums.second;
    if (column_of(lane) < sums.width) out[column_of(lane)] = T(sum);
  });
}

}  // namespace sidestream::model::device
