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
  SIDESTREAM_INLINE void operator()(std::int64_t row, const Halves& line) const {
    std::memcpy(static_cast<void*>(data + row * stride), &line, sizeof(line));
  }
};
struct PastCaches {
  BFloat16* data;
  std::int64_t stride;
  SIDESTREAM_INLINE void operator()(std::int64_t row, const Halves& line) const {
    stream<L>(line, data + row * stride);
  }
};

template <std::int64_t kRows, typename Store>
SIDESTREAM_INLINE void multiply_rows(const StripProduct& p, const Store& store) {
  L::Floats low[kRows], high[kRows];
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kRows; ++i) low[i] = high[i] = L::Floats{};
  const BFloat16* pairs = p.strip;
  for (std::int64_t k = 0; k < p.k; k += 2, pairs += 2 * kStripColumns) {
    L::Words first, second;
    std::memcpy(&first, pairs, sizeof(first));
    std::memcpy(&second, pairs + kStripColumns, sizeof(second));
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
  for (std::int64_t i = 0; i < kRows; ++i) store(i, rounded(low[i], high[i]));
}

template <std::int64_t kRows, typename Store>
SIDESTREAM_INLINE void multiply_tile(const StripProduct& p, const Store& store) {
  if constexpr (kRows > 1) {
    if (p.m < kRows) return multiply_tile<kRows - 1>(p, store);
  }
  multiply_rows<kRows>(p, store);
}

// In tiles of about the same height.
template <typename Store>
SIDESTREAM_INLINE void multiply_all_rows(StripProduct product, Store store) {
  const std::int64_t m = product.m;
  std::int64_t tiles = (m + kDotTileRows - 1) / kDotTileRows;
  for (std::int64_t row = 0; row < m; --tiles) {
    product.m = (m - row + tiles - 1) / tiles;
    multiply_tile<kDotTileRows>(product, store);
    product.a += product.m * product.a_stride;
    store.data += product.m * store.stride;
    row += product.m;
  }
}

SIDESTREAM_WITH_DOT_PRODUCTS void multiply_into_caches(const StripProduct& product,
                                                       const ToCaches& store) {
  multiply_all_rows(product, store);
}

// Words of the strips' rows 2i and 2i + 1, of all whole strips.
SIDESTREAM_WITH_DOT_PRODUCTS void interleave_strips(const BFloat16* low, const BFloat16* high,
                                                    std::int64_t strips, std::int64_t step,
                                                    BFloat16* target) {
  constexpr std::uint16_t kHigh = kStripColumns;  // where the second operand of a shuffle begins
  Halves first_half;
  for (std::uint16_t i = 0; i < kStripColumns; ++i)
    first_half[i] = static_cast<std::uint16_t>(i / 2 + (i % 2) * kHigh);
  const Halves second_half = first_half + static_cast<std::uint16_t>(kLanes);
  for (std::int64_t strip = 0; strip < strips; ++strip, target += step) {
    Halves even, odd;
    std::memcpy(&even, low + strip * kStripColumns, sizeof(even));
    std::memcpy(&odd, high + strip * kStripColumns, sizeof(odd));
    const Halves first = __builtin_shuffle(even, odd, first_half),
                 second = __builtin_shuffle(even, odd, second_half);
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

void multiply_plainly(const StripProduct& p, const Rows<BFloat16>& out) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.columns; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const BFloat16 b = p.strip[k / 2 * 2 * kStripColumns + 2 * j + k % 2];
        sum += static_cast<float>(p.a[i * p.a_stride + k]) * static_cast<float>(b);
      }
      if (p.bias != nullptr) sum += static_cast<float>(p.bias[j]);
      out.data[i * out.stride + j] = BFloat16(sum);
    }
  }
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

}  // namespace sidestream::model::kernels
