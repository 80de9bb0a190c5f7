#include "model/kernels/float_strip.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/multiple.hpp"
#include "core/base/vectorize.hpp"
#include "model/kernels/lanes.hpp"
#include "model/kernels/pack.hpp"
#include "model/kernels/transpose32.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

constexpr std::int64_t kColumns = kFloatStripColumns;
// With two vectors of B and one element of A, all sixteen registers.
constexpr std::int64_t kTileRows = 6;
constexpr std::int64_t kLine = 16;  // elements

// Asks for the rows that the next tile takes, a line of each with every sixteenth k: they lie in
// the second-level cache, and no prefetcher of the processor follows six streams at once.
template <std::int64_t kRows>
SIDESTREAM_INLINE void expect_line(const float* next, std::int64_t stride) {
#pragma GCC unroll 6
  for (std::int64_t i = 0; i < kRows; ++i) __builtin_prefetch(next + i * stride);
}

template <typename L, std::int64_t kRows>
struct Sums {
  typename L::Floats low[kRows], high[kRows];

  SIDESTREAM_INLINE void add(const float* a, std::int64_t stride, const float* row_of_strip) {
    const auto b_low = load_lanes<L>(row_of_strip),
               b_high = load_lanes<L>(row_of_strip + L::kCount);
#pragma GCC unroll 6
    for (std::int64_t i = 0; i < kRows; ++i) {
      const float element = a[i * stride];
      low[i] += element * b_low;
      high[i] += element * b_high;
    }
  }

  SIDESTREAM_INLINE void store(float* c, std::int64_t stride, Accumulate accumulate) const {
#pragma GCC unroll 6
    for (std::int64_t i = 0; i < kRows; ++i) {
      float* const row = c + i * stride;
      const bool adds = accumulate == Accumulate::kYes;
      store_lanes<L>(adds ? load_lanes<L>(row) + low[i] : low[i], L::kCount, row);
      store_lanes<L>(adds ? load_lanes<L>(row + L::kCount) + high[i] : high[i], L::kCount,
                     row + L::kCount);
    }
  }
};

// p.m is kRows; `next`: the rows of A after them.
template <typename L, std::int64_t kRows>
SIDESTREAM_INLINE void multiply_rows(const FloatStripProduct& p, const float* next) {
  static_assert(L::kCount == 8 && kColumns == 2 * L::kCount);
  Sums<L, kRows> sums = {};
  std::int64_t k = 0;
  for (; k + kLine <= p.k; k += kLine) {
    expect_line<kRows>(next + k, p.a_stride);
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < kLine; ++i)
      sums.add(p.a + k + i, p.a_stride, p.strip + (k + i) * kColumns);
  }
  for (; k < p.k; ++k) sums.add(p.a + k, p.a_stride, p.strip + k * kColumns);
  sums.store(p.c, p.c_stride, p.accumulate);
}

template <typename L, std::int64_t kRows = kTileRows>
SIDESTREAM_INLINE void multiply_tile(const FloatStripProduct& p, const float* next) {
  if constexpr (kRows > 1) {
    if (p.m < kRows) return multiply_tile<L, kRows - 1>(p, next);
  }
  multiply_rows<L, kRows>(p, next);
}

SIDESTREAM_INLINE void copy_columns(const float* tile, const FloatStripProduct& p) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    float* const row = p.c + i * p.c_stride;
    for (std::int64_t j = 0; j < p.columns; ++j)
      row[j] = (p.accumulate == Accumulate::kYes ? row[j] : 0.0f) + tile[i * kColumns + j];
  }
}

struct MultiplyStrip {
  // In tiles of about the same height; those with fewer columns than the strip by way of a buffer.
  template <typename L>
  SIDESTREAM_INLINE static void run(const FloatStripProduct& product) {
    const bool whole = product.columns == kColumns;
    alignas(64) float buffer[kTileRows * kColumns];
    FloatStripProduct tile = product;
    std::int64_t tiles = (product.m + kTileRows - 1) / kTileRows;
    for (std::int64_t row = 0; row < product.m; --tiles) {
      tile.m = (product.m - row + tiles - 1) / tiles;
      const float* const next = tiles > 1 ? tile.a + tile.m * tile.a_stride : product.a;
      FloatStripProduct target = tile;
      if (!whole) {
        target.c = buffer;
        target.c_stride = kColumns;
        target.accumulate = Accumulate::kNo;
      }
      multiply_tile<L>(target, next);
      if (!whole) copy_columns(buffer, tile);
      tile.a += tile.m * tile.a_stride;
      tile.c += tile.m * tile.c_stride;
      row += tile.m;
    }
  }
};

// Some rows of all whole strips at a time: rows are read as they lie, and only the pages of so many
// are open at once. Those of the next ones are asked for meanwhile.
struct PackStrips {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const T* const& b, std::int64_t stride,
                                    const FloatStripsShape& shape, float* const& strips) {
    constexpr std::int64_t kRows = 8;
    for (std::int64_t k = 0; k < shape.k; k += kRows) {
      const std::int64_t rows = shape.k - k < kRows ? shape.k - k : kRows;
      const bool has_next = k + 2 * kRows <= shape.k;
      for (std::int64_t column = 0; column + kColumns <= shape.n; column += kColumns) {
        const T* source = b + k * stride + column;
        float* target = strips + column * shape.k + k * kColumns;
        for (std::int64_t i = 0; i < rows; ++i, source += stride, target += kColumns) {
          if (has_next) __builtin_prefetch(source + kRows * stride);
          store_lanes<L>(load_lanes<L>(source), L::kCount, target);
          store_lanes<L>(load_lanes<L>(source + L::kCount), L::kCount, target + L::kCount);
        }
      }
    }
  }
};

// Words hold rows 2i and 2i + 1 of a strip in their halves, as kernels/pack.hpp makes them.
struct WidenPairs {
  template <typename L>
  SIDESTREAM_INLINE static void run(const BFloat16* const& pairs, std::int64_t k,
                                    float* const& strip) {
    for (std::int64_t row = 0; row < k; ++row) {
      const BFloat16* const words = pairs + row / 2 * 2 * kColumns;
      for (std::int64_t j = 0; j < kColumns; j += L::kCount) {
        const auto both = load_words<L>(words + 2 * j);
        const typename L::Words one = row % 2 == 0 ? both << 16 : both & 0xFFFF0000u;
        std::memcpy(strip + row * kColumns + j, &one, sizeof(one));
      }
    }
  }
};

// Eight lanes also where the processor has sixteen.
template <typename Kernel, typename... Arguments>
void run_in_eight_lanes(const Arguments&... arguments) {
  has_avx2() ? in_eight_lanes<Kernel>(arguments...) : in_any_lanes<Kernel>(arguments...);
}

// From `column` on, one strip or what is left.
PanelShape strip_at(const FloatStripsShape& shape, std::int64_t column, std::int64_t padded_k) {
  return {.k = shape.k,
          .n = std::min(kColumns, shape.n - column),
          .padded_k = padded_k,
          .width = kColumns};
}

void pack_last_strip(const float* b, std::int64_t stride, const FloatStripsShape& shape,
                     float* strip) {
  pack_rows(b, stride, strip_at(shape, 0, shape.k), strip);
}

void pack_last_strip(const BFloat16* b, std::int64_t stride, const FloatStripsShape& shape,
                     float* strip) {
  std::fill_n(strip, shape.k * kColumns, 0.0f);
  widen_rows(b, stride, shape.k, shape.n, strip, kColumns);
}

template <typename T>
void pack_strips(const T* b, std::int64_t stride, const FloatStripsShape& shape, float* strips) {
  run_in_eight_lanes<PackStrips>(b, stride, shape, strips);
  const std::int64_t whole = shape.n / kColumns * kColumns;
  if (whole < shape.n)
    pack_last_strip(b + whole, stride, {.k = shape.k, .n = shape.n - whole},
                    strips + whole * shape.k);
}

}  // namespace

void pack_float_strips(const float* b, std::int64_t stride, const FloatStripsShape& shape,
                       float* strips) {
  pack_strips(b, stride, shape, strips);
}

void pack_float_strips(const BFloat16* b, std::int64_t stride, const FloatStripsShape& shape,
                       float* strips) {
  pack_strips(b, stride, shape, strips);
}

void pack_float_strips_transposed(const float* b_t, std::int64_t stride,
                                  const FloatStripsShape& shape, float* strips) {
  for (std::int64_t column = 0; column < shape.n; column += kColumns)
    pack_transposed(b_t + column * stride, stride, strip_at(shape, column, shape.k),
                    strips + column * shape.k);
}

void pack_float_strips_transposed(const BFloat16* b_t, std::int64_t stride,
                                  const FloatStripsShape& shape, float* strips) {
  alignas(64) std::array<BFloat16, static_cast<std::size_t>(kFloatStripDepth * kColumns)> pairs;
  for (std::int64_t column = 0; column < shape.n; column += kColumns) {
    pack_transposed(b_t + column * stride, stride,
                    strip_at(shape, column, core::rounded_up(shape.k, 2)), pairs.data());
    run_in_eight_lanes<WidenPairs>(static_cast<const BFloat16*>(pairs.data()), shape.k,
                                   strips + column * shape.k);
  }
}

void multiply_float_strip(const FloatStripProduct& product) {
  run_in_eight_lanes<MultiplyStrip>(product);
}

}  // namespace sidestream::model::kernels
