#include "model/kernels/dot_product.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/vectorize.hpp"
#include "model/kernels/block_product.hpp"
#include "model/kernels/lanes.hpp"
#include "model/kernels/pack.hpp"
#include "model/kernels/prefetch.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

using L = SixteenRoundingLanes;
using Halves = std::uint16_t __attribute__((vector_size(64)));  // a line
constexpr std::int64_t kLanes = L::kCount;
static_assert(kStripColumns == 2 * kLanes);

#if defined(__x86_64__)
#define SIDESTREAM_WITH_DOT_PRODUCTS \
  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,avx2,fma")))
SIDESTREAM_INLINE void add_products(L::Floats& sums, const L::Words& pairs, std::uint32_t pair) {
  const L::Words all = L::Words{} + pair;
  asm("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(pairs), "v"(all));
}
SIDESTREAM_INLINE Halves rounded(const L::Floats& low, const L::Floats& high) {
  Halves line;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(line) : "v"(low), "v"(high));
  return line;
}
#else  // never called
#define SIDESTREAM_WITH_DOT_PRODUCTS
SIDESTREAM_INLINE void add_products(L::Floats&, const L::Words&, std::uint32_t) {}
SIDESTREAM_INLINE Halves rounded(const L::Floats&, const L::Floats&) { return {}; }
#endif

// Where a tile's rows go.
struct ToCaches {
  BFloat16* data;
  std::int64_t stride;
  SIDESTREAM_INLINE void operator()(std::int64_t row, const L::Floats& low,
                                    const L::Floats& high) const {
    const Halves line = rounded(low, high);
    std::memcpy(static_cast<void*>(data + row * stride), &line, sizeof(line));
  }
};
struct PastCaches {
  BFloat16* data;
  std::int64_t stride;
  SIDESTREAM_INLINE void operator()(std::int64_t row, const L::Floats& low,
                                    const L::Floats& high) const {
    stream<L>(rounded(low, high), data + row * stride);
  }
};
template <Accumulate kAdds>
struct ToSums {
  float* data;
  std::int64_t stride;
  SIDESTREAM_INLINE void operator()(std::int64_t row, const L::Floats& low,
                                    const L::Floats& high) const {
    float* const sums = data + row * stride;
    if constexpr (kAdds == Accumulate::kYes) {
      store_lanes<L>(load_lanes<L>(sums) + low, kLanes, sums);
      store_lanes<L>(load_lanes<L>(sums + kLanes) + high, kLanes, sums + kLanes);
    } else {
      store_lanes<L>(low, kLanes, sums);
      store_lanes<L>(high, kLanes, sums + kLanes);
    }
  }
};

// Where a tile's strip comes from.
struct FromStrip {
  const BFloat16* strip;
  SIDESTREAM_INLINE void operator()(std::int64_t k, L::Words& first, L::Words& second) const {
    std::memcpy(&first, strip + k * kStripColumns, sizeof(first));
    std::memcpy(&second, strip + k * kStripColumns + kStripColumns, sizeof(second));
  }
};
// A line of later columns with every other pair, too.
struct FromStripWhileFetching {
  const BFloat16* strip;
  const BFloat16* later;
  std::int64_t later_stride;
  SIDESTREAM_INLINE void operator()(std::int64_t k, L::Words& first, L::Words& second) const {
    if (k % 4 == 0) __builtin_prefetch(later + k / 4 * later_stride, 0, 2);
    FromStrip{strip}(k, first, second);
  }
};

// Of the words of two rows those of the first, and of the second half of columns, in pairs.
struct PairShuffles {
  Halves first, second;
  SIDESTREAM_INLINE PairShuffles() {
    constexpr std::uint16_t kHigh = kStripColumns;  // where the second operand of a shuffle begins
    for (std::uint16_t i = 0; i < kStripColumns; ++i)
      first[i] = static_cast<std::uint16_t>(i / 2 + (i % 2) * kHigh);
    second = first + static_cast<std::uint16_t>(kLanes);
  }
};
// B's rows as they lie; they become the strip in passing.
struct FromRows {
  const BFloat16* rows;
  std::int64_t stride;
  BFloat16* strip;
  PairShuffles shuffles;
  SIDESTREAM_INLINE void operator()(std::int64_t k, L::Words& first, L::Words& second) const {
    Halves even, odd;
    std::memcpy(&even, rows + k * stride, sizeof(even));
    std::memcpy(&odd, rows + (k + 1) * stride, sizeof(odd));
    first = __builtin_bit_cast(L::Words, __builtin_shuffle(even, odd, shuffles.first));
    second = __builtin_bit_cast(L::Words, __builtin_shuffle(even, odd, shuffles.second));
    BFloat16* const pairs = strip + k * kStripColumns;
    std::memcpy(static_cast<void*>(pairs), &first, sizeof(first));
    std::memcpy(static_cast<void*>(pairs + kStripColumns), &second, sizeof(second));
  }
};

template <std::int64_t kRows, typename Source, typename Store>
SIDESTREAM_INLINE void multiply_rows(const StripProduct& p, const Source& source,
                                     const Store& store) {
  L::Floats low[kRows], high[kRows];
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kRows; ++i) low[i] = high[i] = L::Floats{};
  for (std::int64_t k = 0; k < p.k; k += 2) {
    L::Words first, second;
    source(k, first, second);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
      std::uint32_t pair;
      std::memcpy(&pair, p.a + i * p.a_stride + k, sizeof(pair));
      add_products(low[i], first, pair);
      add_products(high[i], second, pair);
    }
  }
  if (p.bias != nullptr) {
    const L::Floats bias_low = load_lanes<L>(p.bias), bias_high = load_lanes<L>(p.bias + kLanes);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
      low[i] += bias_low;
      high[i] += bias_high;
    }
  }
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kRows; ++i) store(i, low[i], high[i]);
}

template <std::int64_t kRows, typename Source, typename Store>
SIDESTREAM_INLINE void multiply_tile(const StripProduct& p, const Source& source,
                                     const Store& store) {
  if constexpr (kRows > 1) {
    if (p.m < kRows) return multiply_tile<kRows - 1>(p, source, store);
  }
  multiply_rows<kRows>(p, source, store);
}

// Calls tile(rows of A, their store, number of the tile) for tiles of about the same height.
template <std::int64_t kMostRows, typename Store, typename Body>
SIDESTREAM_INLINE void for_tiles(StripProduct product, Store store, Body tile) {
  const std::int64_t m = product.m, tiles = (m + kMostRows - 1) / kMostRows;
  for (std::int64_t row = 0, i = 0; row < m; ++i) {
    product.m = (m - row + tiles - i - 1) / (tiles - i);
    tile(product, store, i);
    product.a += product.m * product.a_stride;
    store.data += product.m * store.stride;
    row += product.m;
  }
}

template <typename Store>
SIDESTREAM_INLINE void multiply_all_rows(const StripProduct& product, const Store& store) {
  for_tiles<kDotTileRows>(
      product, store,
      [&](const StripProduct& rows, const Store& their_store, std::int64_t)
          __attribute__((always_inline)) {
            multiply_tile<kDotTileRows>(rows, FromStrip{product.strip}, their_store);
          });
}

// The tile that packs has two registers less.
constexpr std::int64_t kPackingTileRows = kDotTileRows - 1;
// Tiles that fetch, each a line of a quarter of the rows to come.
constexpr std::int64_t kFetchingTiles = 4;

template <typename Store>
SIDESTREAM_INLINE void pack_and_multiply(const StripProduct& product, const StripSource& source,
                                         const Store& store) {
  const std::int64_t others =
      (product.m + kPackingTileRows - 1) / kPackingTileRows - 1;  // that read the strip
  const FromRows rows_of_b{source.rows, source.stride, source.strip, PairShuffles()};
  std::int64_t quarter = 0;
  for_tiles<kPackingTileRows>(
      product, store,
      [&](const StripProduct& rows, const Store& their_store, std::int64_t tile)
          __attribute__((always_inline)) {
            if (tile == 0) return multiply_tile<kPackingTileRows>(rows, rows_of_b, their_store);
            const bool is_due = source.later != nullptr && quarter < kFetchingTiles &&
                                (tile - 1) * kFetchingTiles >= quarter * others;
            if (!is_due)
              return multiply_tile<kPackingTileRows>(rows, FromStrip{source.strip}, their_store);
            const std::int64_t first = quarter++ * (product.k / kFetchingTiles);
            multiply_tile<kPackingTileRows>(
                rows,
                FromStripWhileFetching{source.strip, source.later + first * source.stride,
                                       source.stride},
                their_store);
          });
}

SIDESTREAM_WITH_DOT_PRODUCTS void multiply_into_caches(const StripProduct& product,
                                                       const ToCaches& store) {
  multiply_all_rows(product, store);
}

// Words of the strips' rows 2i and 2i + 1, of all whole strips.
SIDESTREAM_WITH_DOT_PRODUCTS void interleave_strips(const BFloat16* low, const BFloat16* high,
                                                    std::int64_t strips, std::int64_t step,
                                                    BFloat16* target) {
  const PairShuffles shuffles;
  for (std::int64_t strip = 0; strip < strips; ++strip, target += step) {
    Halves even, odd;
    std::memcpy(&even, low + strip * kStripColumns, sizeof(even));
    std::memcpy(&odd, high + strip * kStripColumns, sizeof(odd));
    const Halves first = __builtin_shuffle(even, odd, shuffles.first),
                 second = __builtin_shuffle(even, odd, shuffles.second);
    std::memcpy(static_cast<void*>(target), &first, sizeof(first));
    std::memcpy(static_cast<void*>(target + kStripColumns), &second, sizeof(second));
  }
}

// As many columns as there are, by way of a buffer.
void multiply_few_columns(const StripProduct& product, const Rows<BFloat16>& out) {
  alignas(64) BFloat16 few[kDotTileRows * kStripColumns];
  BFloat16 bias[kStripColumns] = {};
  StripProduct rows = product;
  if (product.bias != nullptr) {
    std::copy_n(product.bias, product.columns, bias);
    rows.bias = bias;
  }
  for (std::int64_t row = 0; row < product.m; row += rows.m) {
    rows.m = std::min(kDotTileRows, product.m - row);
    multiply_into_caches(rows, ToCaches{few, kStripColumns});
    for (std::int64_t i = 0; i < rows.m; ++i)
      std::copy_n(few + i * kStripColumns, product.columns, out.data + (row + i) * out.stride);
    rows.a += rows.m * rows.a_stride;
  }
}

SIDESTREAM_WITH_DOT_PRODUCTS void multiply_past_caches(const StripProduct& product,
                                                       const PastCaches& store) {
  multiply_all_rows(product, store);
}

SIDESTREAM_WITH_DOT_PRODUCTS void pack_and_multiply_into_caches(const StripProduct& product,
                                                                const StripSource& source,
                                                                const ToCaches& store) {
  pack_and_multiply(product, source, store);
}

template <Accumulate kAdds>
SIDESTREAM_WITH_DOT_PRODUCTS void pack_and_multiply_into_sums(const StripProduct& product,
                                                              const StripSource& source,
                                                              const ToSums<kAdds>& store) {
  pack_and_multiply(product, source, store);
}

template <Accumulate kAdds>
SIDESTREAM_WITH_DOT_PRODUCTS void multiply_into_sums(const StripProduct& product,
                                                     const ToSums<kAdds>& store) {
  multiply_all_rows(product, store);
}

// Calls put(row, column, sum).
template <typename Put>
void multiply_plainly(const StripProduct& p, Put put) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.columns; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const BFloat16 b = p.strip[k / 2 * 2 * kStripColumns + 2 * j + k % 2];
        sum += static_cast<float>(p.a[i * p.a_stride + k]) * static_cast<float>(b);
      }
      if (p.bias != nullptr) sum += static_cast<float>(p.bias[j]);
      put(i, j, sum);
    }
  }
}

void multiply_plainly(const StripProduct& product, const Rows<BFloat16>& out) {
  multiply_plainly(product, [&](std::int64_t row, std::int64_t column, float sum) {
    out.data[row * out.stride + column] = BFloat16(sum);
  });
}

void multiply_plainly(const StripProduct& product, const StripSums& sums) {
  multiply_plainly(product, [&](std::int64_t row, std::int64_t column, float sum) {
    float& place = sums.rows.data[row * sums.rows.stride + column];
    place = sums.accumulate == Accumulate::kYes ? place + sum : sum;
  });
}

StripProduct packed(StripProduct product, const StripSource& source) {
  pack_strips(source.rows, source.stride,
              {.k = product.k, .n = kStripColumns, .padded_k = product.k}, source.strip);
  product.strip = source.strip;
  return product;
}

}  // namespace

bool has_fast_dot_products() noexcept {
  return has_faster_bf16() && !has_amx() && has_avx512_bf16();
}

void pack_strips(const BFloat16* source, std::int64_t stride, const StripShape& shape,
                 BFloat16* strips) {
  constexpr std::int64_t kPairsAhead = 8;
  const std::int64_t step = shape.padded_k * kStripColumns;
  const bool in_pairs = shape.k == shape.padded_k && has_avx512_bf16();
  const std::int64_t whole = in_pairs ? shape.n / kStripColumns : 0;
  for (std::int64_t k = 0; whole > 0 && k < shape.k; k += 2) {
    const BFloat16* row = source + k * stride;
    if (k + 2 * kPairsAhead < shape.k) {
      expect_row(row + 2 * kPairsAhead * stride, shape.n * 2);
      expect_row(row + (2 * kPairsAhead + 1) * stride, shape.n * 2);
    }
    interleave_strips(row, row + stride, whole, step, strips + k * kStripColumns);
  }
  for (std::int64_t column = whole * kStripColumns; column < shape.n; column += kStripColumns) {
    pack_rows(source + column, stride,
              {.k = shape.k,
               .n = std::min(kStripColumns, shape.n - column),
               .padded_k = shape.padded_k,
               .width = kStripColumns},
              strips + column / kStripColumns * step);
  }
}

void pack_strips_transposed(const BFloat16* source, std::int64_t stride, const StripShape& shape,
                            BFloat16* strips) {
  for (std::int64_t column = 0; column < shape.n; column += kStripColumns) {
    pack_transposed(source + column * stride, stride,
                    {.k = shape.k,
                     .n = std::min(kStripColumns, shape.n - column),
                     .padded_k = shape.padded_k,
                     .width = kStripColumns},
                    strips + column * shape.padded_k);
  }
}

void multiply_strip(const StripProduct& product, Rows<BFloat16> out) {
  if (!has_avx512_bf16()) return multiply_plainly(product, out);
  if (product.columns < kStripColumns) return multiply_few_columns(product, out);
  multiply_into_caches(product, ToCaches{out.data, out.stride});
}

void multiply_strip_past_caches(const StripProduct& product, Rows<BFloat16> out) {
  if (!has_avx512_bf16()) return multiply_plainly(product, out);
  multiply_past_caches(product, PastCaches{out.data, out.stride});
}

void multiply_strip(const StripProduct& product, const StripSums& sums) {
  if (!has_avx512_bf16()) return multiply_plainly(product, sums);
  const auto& [data, stride] = sums.rows;
  if (sums.accumulate == Accumulate::kYes)
    return multiply_into_sums(product, ToSums<Accumulate::kYes>{data, stride});
  multiply_into_sums(product, ToSums<Accumulate::kNo>{data, stride});
}

void pack_and_multiply_strip(const StripProduct& product, const StripSource& source,
                             Rows<BFloat16> out) {
  if (has_avx512_bf16())
    return pack_and_multiply_into_caches(product, source, ToCaches{out.data, out.stride});
  multiply_plainly(packed(product, source), out);
}

void pack_and_multiply_strip(const StripProduct& product, const StripSource& source,
                             const StripSums& sums) {
  const auto& [data, stride] = sums.rows;
  if (!has_avx512_bf16()) {
    multiply_plainly(packed(product, source), sums);
  } else if (sums.accumulate == Accumulate::kYes) {
    pack_and_multiply_into_sums(product, source, ToSums<Accumulate::kYes>{data, stride});
  } else {
    pack_and_multiply_into_sums(product, source, ToSums<Accumulate::kNo>{data, stride});
  }
}

}  // namespace sidestream::model::kernels
