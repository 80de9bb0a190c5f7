#include "model/kernels/split.hpp"

#include <algorithm>

#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

// The upper half of a word, rounded to nearest even. Of a NaN it may be anything.
SIDESTREAM_INLINE std::uint32_t rounded(float value) {
  const auto wide = __builtin_bit_cast(std::uint32_t, value);
  return (wide + 0x7FFFu + ((wide >> 16) & 1u)) & 0xFFFF0000u;
}

constexpr std::uint32_t kNotANumber = 0x7FC00000u;
constexpr std::uint32_t kRoundsToInfinity = 0x7F7F8000u;  // from here on, without its sign

SIDESTREAM_INLINE float number(std::uint32_t word) { return __builtin_bit_cast(float, word); }

// Each part in the upper half of a word.
struct Parts {
  std::uint32_t hi, mid, lo;
};

SIDESTREAM_INLINE Parts parts_of(float value) {
  const auto wide = __builtin_bit_cast(std::uint32_t, value);
  const bool fits = (wide & 0x7FFFFFFFu) < kRoundsToInfinity;
  // The largest numbers are cut off, for their rest would be infinite, too.
  const std::uint32_t upper = fits ? rounded(value) : wide & 0xFFFF0000u;
  // What is no number has to stay none: cutting off may leave an infinity of it.
  const std::uint32_t hi = value == value ? upper : kNotANumber;
  const float rest = value - number(hi);
  const std::uint32_t mid = rounded(rest);
  return {hi, mid, rounded(rest - number(mid))};
}

SIDESTREAM_VECTORIZED void split_row(const float* __restrict source, std::int64_t n,
                                     std::uint16_t* __restrict hi, std::uint16_t* __restrict mid,
                                     std::uint16_t* __restrict lo) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Parts parts = parts_of(source[i]);
    hi[i] = static_cast<std::uint16_t>(parts.hi >> 16);
    mid[i] = static_cast<std::uint16_t>(parts.mid >> 16);
    lo[i] = static_cast<std::uint16_t>(parts.lo >> 16);
  }
}

SIDESTREAM_VECTORIZED void split_pair(const float* __restrict even, const float* __restrict odd,
                                      std::int64_t n, std::uint32_t* __restrict lo,
                                      std::uint32_t* __restrict mid, std::uint32_t* __restrict hi) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Parts a = parts_of(even[i]), b = parts_of(odd[i]);
    lo[i] = (a.lo >> 16) | b.lo;
    mid[i] = (a.mid >> 16) | b.mid;
    hi[i] = (a.hi >> 16) | b.hi;
  }
}

SIDESTREAM_VECTORIZED void split_last(const float* __restrict even, std::int64_t n,
                                      std::uint32_t* __restrict lo, std::uint32_t* __restrict mid,
                                      std::uint32_t* __restrict hi) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Parts a = parts_of(even[i]);
    lo[i] = a.lo >> 16;
    mid[i] = a.mid >> 16;
    hi[i] = a.hi >> 16;
  }
}

}  // namespace

void split_rows(const float* source, std::int64_t stride, const MatrixShape& shape,
                const SplitRows& target) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    auto* hi = reinterpret_cast<std::uint16_t*>(target.data + row * target.stride);
    std::uint16_t *mid = hi + target.padded_columns, *lo = mid + target.padded_columns;
    split_row(source + row * stride, shape.columns, hi, mid, lo);
    for (std::uint16_t* part : {hi, mid, lo})
      std::fill(part + shape.columns, part + target.padded_columns, 0);
  }
}

void split_panel(const float* source, std::int64_t stride, const PanelShape& shape,
                 BFloat16* panel) {
  const std::int64_t width = shape.width, part = shape.padded_k / 2 * width, pairs = shape.k / 2;
  auto* lo = reinterpret_cast<std::uint32_t*>(panel);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const float* even = source + 2 * pair * stride;
    std::uint32_t* words = lo + pair * width;
    split_pair(even, even + stride, shape.n, words, words + part, words + 2 * part);
  }
  if (shape.k % 2 != 0) {
    std::uint32_t* words = lo + pairs * width;
    split_last(source + (shape.k - 1) * stride, shape.n, words, words + part, words + 2 * part);
  }
  const std::int64_t filled = (shape.k + 1) / 2;
  for (std::uint32_t* words : {lo, lo + part, lo + 2 * part}) {
    for (std::int64_t row = 0; shape.n < width && row < filled; ++row) {
      std::fill(words + row * width + shape.n, words + (row + 1) * width, 0u);
    }
    std::fill(words + filled * width, words + part, 0u);
  }
}

}  // namespace sidestream::model::kernels
