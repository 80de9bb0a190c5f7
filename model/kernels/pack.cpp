#include "model/kernels/pack.hpp"

#include <algorithm>

#include "core/base/vectorize.hpp"
#include "model/kernels/prefetch.hpp"
#include "model/kernels/transpose32.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

SIDESTREAM_INLINE std::uint32_t pair_of(BFloat16 low, BFloat16 high) {
  return static_cast<std::uint32_t>(low.bits) | (static_cast<std::uint32_t>(high.bits) << 16);
}

// Words of a panel: one float, or a pair of bf16.
SIDESTREAM_INLINE void clear_columns(std::uint32_t* words, std::int64_t rows, std::int64_t from,
                                     std::int64_t width) {
  if (from == width) return;
  for (std::int64_t row = 0; row < rows; ++row)
    std::fill(words + row * width + from, words + (row + 1) * width, 0u);
}

SIDESTREAM_VECTORIZED void interleave(const BFloat16* __restrict low,
                                      const BFloat16* __restrict high, std::int64_t n,
                                      std::uint32_t* __restrict words) {
  for (std::int64_t i = 0; i < n; ++i) words[i] = pair_of(low[i], high[i]);
}

SIDESTREAM_VECTORIZED void widen(const BFloat16* __restrict low, std::int64_t n,
                                 std::uint32_t* __restrict words) {
  for (std::int64_t i = 0; i < n; ++i) words[i] = low[i].bits;
}

// Where the words of a transposed matrix go: [columns][rows].
struct TransposedWords {
  std::uint32_t* data;
  std::int64_t stride;
};

struct Transpose32 {
  template <typename L>
  SIDESTREAM_INLINE static void run(const std::uint32_t* const& source, std::int64_t stride,
                                    const MatrixShape& shape, const TransposedWords& target) {
    transpose_words<L>(
        shape.rows, shape.columns, target.data, target.stride,
        [=](std::int64_t r, std::int64_t c)
            __attribute__((always_inline)) { return load_words<L>(source + r * stride + c); },
        [=](std::int64_t r, std::int64_t c)
            __attribute__((always_inline)) { return source[r * stride + c]; },
        [=](std::int64_t r)
            __attribute__((always_inline)) { expect_row(source + r * stride, shape.columns * 4); });
  }
};

// Pairs of bf16 neighbours in a row; rows need not be aligned to a word.
struct TransposePairs {
  template <typename L>
  SIDESTREAM_INLINE static void run(const BFloat16* const& source, std::int64_t stride,
                                    const MatrixShape& shape, const TransposedWords& target) {
    transpose_words<L>(
        shape.rows, shape.columns, target.data, target.stride,
        [=](std::int64_t r, std::int64_t c)
            __attribute__((always_inline)) { return load_words<L>(source + r * stride + 2 * c); },
        [=](std::int64_t r, std::int64_t c) __attribute__((always_inline)) {
          return pair_of(source[r * stride + 2 * c], source[r * stride + 2 * c + 1]);
        },
        [](std::int64_t) __attribute__((always_inline)){});
  }
};

// Neighbours in a column become a word, then words are transposed: rows of the source in pairs.
struct TransposeColumns {
  template <typename L>
  SIDESTREAM_INLINE static void run(const BFloat16* const& source, std::int64_t stride,
                                    const MatrixShape& shape, const TransposedWords& target) {
    const auto row = [=](std::int64_t r, std::int64_t c) __attribute__((always_inline)) {
      typename L::Halves halves;
      std::memcpy(&halves, source + r * stride + c, sizeof(halves));
      return words_of<L>(halves);
    };
    transpose_words<L>(
        shape.rows / 2, shape.columns, target.data, target.stride,
        [=](std::int64_t r, std::int64_t c) __attribute__((always_inline)) {
          return typename L::Words(row(2 * r, c) | (row(2 * r + 1, c) << 16));
        },
        [=](std::int64_t r, std::int64_t c) __attribute__((always_inline)) {
          return pair_of(source[2 * r * stride + c], source[(2 * r + 1) * stride + c]);
        },
        [=](std::int64_t r) __attribute__((always_inline)) {
          expect_row(source + 2 * r * stride, shape.columns * 2);
          expect_row(source + (2 * r + 1) * stride, shape.columns * 2);
        });
  }
};

}  // namespace

void pack_rows(const float* source, std::int64_t stride, const PanelShape& shape, float* panel) {
  for (std::int64_t row = 0; row < shape.k; ++row) {
    std::copy_n(source + row * stride, shape.n, panel + row * shape.width);
    std::fill(panel + row * shape.width + shape.n, panel + (row + 1) * shape.width, 0.0f);
  }
  std::fill(panel + shape.k * shape.width, panel + shape.padded_k * shape.width, 0.0f);
}

void pack_rows(const BFloat16* source, std::int64_t stride, const PanelShape& shape,
               BFloat16* panel) {
  auto* words = reinterpret_cast<std::uint32_t*>(panel);
  constexpr std::int64_t kPairsAhead = 4;
  const std::int64_t pairs = shape.k / 2;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const BFloat16* low = source + 2 * pair * stride;
    if (pair + kPairsAhead < pairs) {
      expect_row(low + 2 * kPairsAhead * stride, shape.n * 2);
      expect_row(low + (2 * kPairsAhead + 1) * stride, shape.n * 2);
    }
    interleave(low, low + stride, shape.n, words + pair * shape.width);
  }
  if (shape.k % 2 != 0)
    widen(source + (shape.k - 1) * stride, shape.n, words + pairs * shape.width);
  const std::int64_t filled = (shape.k + 1) / 2;
  clear_columns(words, filled, shape.n, shape.width);
  std::fill(words + filled * shape.width, words + shape.padded_k / 2 * shape.width, 0u);
}

void pack_transposed(const float* source, std::int64_t stride, const PanelShape& shape,
                     float* panel) {
  auto* words = reinterpret_cast<std::uint32_t*>(panel);
  run_in_lanes<Transpose32>(reinterpret_cast<const std::uint32_t*>(source), stride,
                            MatrixShape{shape.n, shape.k}, TransposedWords{words, shape.width});
  clear_columns(words, shape.k, shape.n, shape.width);
  std::fill(words + shape.k * shape.width, words + shape.padded_k * shape.width, 0u);
}

void pack_transposed(const BFloat16* source, std::int64_t stride, const PanelShape& shape,
                     BFloat16* panel) {
  auto* words = reinterpret_cast<std::uint32_t*>(panel);
  const std::int64_t pairs = shape.k / 2, filled = (shape.k + 1) / 2;
  run_in_lanes<TransposePairs>(source, stride, MatrixShape{shape.n, pairs},
                               TransposedWords{words, shape.width});
  for (std::int64_t i = 0; shape.k % 2 != 0 && i < shape.n; ++i) {
    words[pairs * shape.width + i] = source[i * stride + shape.k - 1].bits;
  }
  clear_columns(words, filled, shape.n, shape.width);
  std::fill(words + filled * shape.width, words + shape.padded_k / 2 * shape.width, 0u);
}

void transpose_into(const float* source, std::int64_t stride, const MatrixShape& shape,
                    float* target, std::int64_t target_stride) {
  run_in_lanes<Transpose32>(
      reinterpret_cast<const std::uint32_t*>(source), stride, shape,
      TransposedWords{reinterpret_cast<std::uint32_t*>(target), target_stride});
}

void transpose(const float* source, std::int64_t stride, const MatrixShape& shape, float* target,
               std::int64_t target_stride) {
  transpose_into(source, stride, shape, target, target_stride);
  clear_columns(reinterpret_cast<std::uint32_t*>(target), shape.columns, shape.rows, target_stride);
}

void transpose_into(const BFloat16* source, std::int64_t stride, const MatrixShape& shape,
                    BFloat16* target, std::int64_t target_stride) {
  run_in_lanes<TransposeColumns>(
      source, stride, shape,
      TransposedWords{reinterpret_cast<std::uint32_t*>(target), target_stride / 2});
  const std::int64_t last = shape.rows - 1;
  for (std::int64_t c = 0; shape.rows % 2 != 0 && c < shape.columns; ++c)
    target[c * target_stride + last] = source[last * stride + c];
}

void transpose(const BFloat16* source, std::int64_t stride, const MatrixShape& shape,
               BFloat16* target, std::int64_t target_stride) {
  // target_stride is even wherever rows are odd or padded, so that rows start at words.
  auto* words = reinterpret_cast<std::uint32_t*>(target);
  const std::int64_t word_stride = target_stride / 2, filled = (shape.rows + 1) / 2;
  run_in_lanes<TransposeColumns>(source, stride, shape, TransposedWords{words, word_stride});
  for (std::int64_t c = 0; shape.rows % 2 != 0 && c < shape.columns; ++c) {
    words[c * word_stride + shape.rows / 2] = source[(shape.rows - 1) * stride + c].bits;
  }
  clear_columns(words, shape.columns, filled, word_stride);
}

}  // namespace sidestream::model::kernels
