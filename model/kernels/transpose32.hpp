// Transposition of 32-bit words in blocks of 8 x 8, in registers.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {

using Words8 = std::uint32_t __attribute__((vector_size(32)));

SIDESTREAM_INLINE void transpose_8x8(Words8 (&r)[8]) {
  constexpr Words8 kLow32 = {0, 8, 1, 9, 4, 12, 5, 13}, kHigh32 = {2, 10, 3, 11, 6, 14, 7, 15};
  constexpr Words8 kLow64 = {0, 1, 8, 9, 4, 5, 12, 13}, kHigh64 = {2, 3, 10, 11, 6, 7, 14, 15};
  constexpr Words8 kLow128 = {0, 1, 2, 3, 8, 9, 10, 11}, kHigh128 = {4, 5, 6, 7, 12, 13, 14, 15};
  Words8 a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = __builtin_shuffle(r[2 * i], r[2 * i + 1], kLow32);
    a[2 * i + 1] = __builtin_shuffle(r[2 * i], r[2 * i + 1], kHigh32);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = __builtin_shuffle(a[4 * i], a[4 * i + 2], kLow64);
    b[4 * i + 1] = __builtin_shuffle(a[4 * i], a[4 * i + 2], kHigh64);
    b[4 * i + 2] = __builtin_shuffle(a[4 * i + 1], a[4 * i + 3], kLow64);
    b[4 * i + 3] = __builtin_shuffle(a[4 * i + 1], a[4 * i + 3], kHigh64);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = __builtin_shuffle(b[i], b[i + 4], kLow128);
    r[i + 4] = __builtin_shuffle(b[i], b[i + 4], kHigh128);
  }
}

// target[c * target_stride + r] = load(r, c). load_8(r, c) gives 8 words of a row, load_1 one of
// them; expect(r) asks for a row ahead of its use.
//
// Rows of the target are often a power of two apart, where only a few cache lines can be open at
// once: runs of kTileRows words are finished in 8 of them before the next 8 are touched.
template <typename Load8, typename Load1, typename Expect>
SIDESTREAM_INLINE void transpose_words(std::int64_t rows, std::int64_t columns,
                                       std::uint32_t* target, std::int64_t target_stride,
                                       Load8 load_8, Load1 load_1, Expect expect) {
  constexpr std::int64_t kTileRows = 128, kRowsAhead = 24;
  const std::int64_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
  for (std::int64_t tile = 0; tile < whole_rows; tile += kTileRows) {
    const std::int64_t tile_end = tile + kTileRows < whole_rows ? tile + kTileRows : whole_rows;
    for (std::int64_t c = 0; c < whole_columns; c += 8) {
      for (std::int64_t r = tile; r < tile_end; r += 8) {
        Words8 block[8];
        if (c == 0 && r + kRowsAhead + 8 <= rows)
          for (int i = 0; i < 8; ++i) expect(r + kRowsAhead + i);
        for (int i = 0; i < 8; ++i) block[i] = load_8(r + i, c);
        transpose_8x8(block);
        for (int i = 0; i < 8; ++i)
          std::memcpy(target + (c + i) * target_stride + r, &block[i], sizeof(Words8));
      }
    }
  }
  for (std::int64_t r = 0; r < whole_rows; ++r) {
    for (std::int64_t c = whole_columns; c < columns; ++c)
      target[c * target_stride + r] = load_1(r, c);
  }
  for (std::int64_t r = whole_rows; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) target[c * target_stride + r] = load_1(r, c);
  }
}

}  // namespace sidestream::model::kernels
