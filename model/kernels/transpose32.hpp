// Transposition of 32-bit words in square blocks that fill the registers, as many words a side as
// the processor has lanes (lanes.hpp).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/vectorize.hpp"
#include "model/kernels/lanes.hpp"

namespace sidestream::model::kernels {

template <typename L>
SIDESTREAM_INLINE typename L::Words load_words(const void* source) {
  typename L::Words words;
  std::memcpy(&words, source, sizeof(words));
  return words;
}

// Swaps the off-diagonal quarters of every 2 kStep x 2 kStep square, then of those half as large.
template <typename L, std::int32_t kStep = L::kCount / 2>
SIDESTREAM_INLINE void transpose_block(typename L::Words (&rows)[L::kCount]) {
  constexpr std::int32_t kOther = L::kCount - kStep;  // from a lane to the one in the other vector
  constexpr typename L::Ints kRight = (L::kIndex & kStep) != 0;
  constexpr typename L::Ints kUpper = L::kIndex + (kRight & kOther);
  constexpr typename L::Ints kLower = kUpper + kStep;
#pragma GCC unroll 16
  for (std::int32_t i = 0; i < L::kCount; ++i) {
    if ((i & kStep) != 0) continue;
    const typename L::Words upper = rows[i], lower = rows[i + kStep];
    rows[i] = __builtin_shuffle(upper, lower, kUpper);
    rows[i + kStep] = __builtin_shuffle(upper, lower, kLower);
  }
  if constexpr (kStep > 1) transpose_block<L, kStep / 2>(rows);
}

// target[c * target_stride + r] = load_one(r, c). load(r, c) gives as many words of a row as there
// are lanes, load_one one of them; expect(r) asks for a row ahead of its use.
//
// Rows of the target are often a power of two apart, where only a few cache lines can be open at
// once: runs of kTileRows words are finished in some of them before the next are touched.
template <typename L, typename Load, typename LoadOne, typename Expect>
SIDESTREAM_INLINE void transpose_words(std::int64_t rows, std::int64_t columns,
                                       std::uint32_t* target, std::int64_t target_stride, Load load,
                                       LoadOne load_one, Expect expect) {
  constexpr std::int64_t kTileRows = 128, kRowsAhead = 24, kSide = L::kCount;
  const std::int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (std::int64_t tile = 0; tile < whole_rows; tile += kTileRows) {
    const std::int64_t tile_end = tile + kTileRows < whole_rows ? tile + kTileRows : whole_rows;
    for (std::int64_t c = 0; c < whole_columns; c += kSide) {
      for (std::int64_t r = tile; r < tile_end; r += kSide) {
        typename L::Words block[kSide];
        if (c == 0 && r + kRowsAhead + kSide <= rows)
          for (std::int64_t i = 0; i < kSide; ++i) expect(r + kRowsAhead + i);
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kSide; ++i) block[i] = load(r + i, c);
        transpose_block<L>(block);
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kSide; ++i)
          std::memcpy(target + (c + i) * target_stride + r, &block[i], sizeof(block[i]));
      }
    }
  }
  for (std::int64_t r = 0; r < whole_rows; ++r) {
    for (std::int64_t c = whole_columns; c < columns; ++c)
      target[c * target_stride + r] = load_one(r, c);
  }
  for (std::int64_t r = whole_rows; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) target[c * target_stride + r] = load_one(r, c);
  }
}

}  // namespace sidestream::model::kernels
