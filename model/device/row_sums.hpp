// Sums over the rows of a matrix in two stages: parts of the rows, then the parts (column_sums).
// The gradient of a bias is one. Neither stage has atomics: the order of the additions is fixed.
#pragma once

#include <cstdint>

#include "model/device/block.hpp"
#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

template <typename T>
struct RowSums {
  const T* x;
  float* partial;  // [parts, width]: sums over the rows of each part
  std::int64_t rows;
  std::int64_t width;
};

// Rows, and parts, of which a thread has the loads under way at once.
constexpr int kSumRowsAhead = 8;
constexpr int kPartsAhead = 8;

// total += rows `row`, row + parts, ..., kRows of them.
template <int kRows, typename T, int kHeld, Access kAccess>
SIDESTREAM_KERNEL void add_rows(HeldRow<T, kHeld, kAccess>& total, const T* row,
                                std::int64_t between, const Share& share) {
  LoadedRow<T, kHeld, kAccess> values[kRows];
  for (int r = 0; r < kRows; ++r) values[r].load_whole(row + r * between, share);
  for (int r = 0; r < kRows; ++r) total.add(values[r].held());
}

// Part `part` of `parts` takes the rows part, part + parts, ...; tile t of a block's columns begins
// at t * threads * kChunk.
template <Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void row_sums_tile(Block& block, const RowSums<T>& sums, std::int64_t tile,
                                     std::int64_t part, std::int64_t parts) {
  const std::int64_t first = tile * block.threads() * kChunk<T>, between = parts * sums.width;
  block.each([&](int thread) {
    const Share share{thread, block.threads(), sums.width - first};
    if (!HeldRow<T, kChunk<T>, kAccess>::has_chunk(share, 0)) return;
    HeldRow<T, kChunk<T>, kAccess> total;
    total.clear();
    std::int64_t row = part;
    const T* x = sums.x + row * sums.width + first;
    for (; row + (kSumRowsAhead - 1) * parts < sums.rows; row += kSumRowsAhead * parts) {
      add_rows<kSumRowsAhead>(total, x, between, share);
      x += kSumRowsAhead * between;
    }
    for (; row < sums.rows; row += parts, x += between) add_rows<1>(total, x, between, share);
    total.store_wide(sums.partial + part * sums.width + first, share);
  });
}

// first[column] = sum over parts of partial[0][part][column], second that of partial[1], third of
// partial[2]: the second stage.
template <typename T>
struct ColumnSums {
  const float* partial;  // [1 to 3, parts, width]
  T* first;
  T* second;
  T* third;
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
    const auto part_at = [&](std::int64_t part) {
      return part < sums.parts ? sums.partial[(set * sums.parts + part) * sums.width + column]
                               : 0.0f;
    };
    for (std::int64_t part = thread / kWarp; part < sums.parts; part += kPartsAhead * warps) {
      float ahead[kPartsAhead];
      for (int a = 0; a < kPartsAhead; ++a) ahead[a] = part_at(part + a * warps);
      for (int a = 0; a < kPartsAhead; ++a) total += ahead[a];
    }
    return total;
  };
  block.lane_sums(add_parts, [&](int lane, float sum) {
    T* out = set == 0 ? sums.first : set == 1 ? sums.second : sums.third;
    if (column_of(lane) < sums.width) out[column_of(lane)] = T(sum);
  });
}

}  // namespace sidestream::model::device
