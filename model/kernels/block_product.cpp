#include "model/kernels/block_product.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;
using Vector = float __attribute__((vector_size(32)));
using Words = std::uint32_t __attribute__((vector_size(32)));

constexpr std::int64_t kLanes = 8;
constexpr std::int64_t kTileRows = 6;  // 12 sums, two of B and one of A: 15 registers
constexpr std::int64_t kTileColumns = 2 * kLanes;
constexpr std::int64_t kDepth = 256;    // of a strip: 16 kB, half of a first-level cache
constexpr std::int64_t kRowBlock = 96;  // of A: with its strips in a second-level cache
constexpr std::int64_t kLeftStride =
    kDepth + 16;  // a power of two would map rows to few sets of the cache

SIDESTREAM_INLINE Vector load(const float* source) {
  Vector vector;
  std::memcpy(&vector, source, sizeof(vector));
  return vector;
}

SIDESTREAM_INLINE void store(const Vector& vector, float* target) {
  std::memcpy(target, &vector, sizeof(vector));
}

// Sixteen columns of B as [k][16].
struct Strip {
  alignas(64) float data[kDepth * kTileColumns];
};

SIDESTREAM_INLINE void fill(Strip& strip, const float* b, std::int64_t stride, std::int64_t k,
                            std::int64_t columns) {
  if (columns == kTileColumns) {
    for (std::int64_t p = 0; p < k; ++p) {
      store(load(b + p * stride), strip.data + p * kTileColumns);
      store(load(b + p * stride + kLanes), strip.data + p * kTileColumns + kLanes);
    }
    return;
  }
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t j = 0; j < kTileColumns; ++j)
      strip.data[p * kTileColumns + j] = j < columns ? b[p * stride + j] : 0.0f;
  }
}

// Words of a panel hold rows 2p and 2p + 1 of B in their halves.
SIDESTREAM_INLINE void widen_words(const void* words, float* even_row, float* odd_row) {
  constexpr std::uint32_t kUpperHalf = 0xFFFF0000u;
  Words pairs;
  std::memcpy(&pairs, words, sizeof(pairs));
  const Words even = pairs << 16, odd = pairs & kUpperHalf;
  std::memcpy(even_row, &even, sizeof(even));
  std::memcpy(odd_row, &odd, sizeof(odd));
}

SIDESTREAM_INLINE void fill(Strip& strip, const BFloat16* b, std::int64_t stride, std::int64_t k,
                            std::int64_t columns) {
  std::uint32_t words[kTileColumns] = {};
  for (std::int64_t p = 0; p < k; p += 2) {
    const void* row = b + p * stride;
    if (columns < kTileColumns) {
      std::memcpy(words, row, static_cast<std::size_t>(columns) * sizeof(words[0]));
      row = words;
    }
    float* even_row = strip.data + p * kTileColumns;
    float* odd_row = even_row + kTileColumns;
    widen_words(row, even_row, odd_row);
    widen_words(static_cast<const std::uint32_t*>(row) + kLanes, even_row + kLanes,
                odd_row + kLanes);
  }
}

// kRows rows of a tile of C.
template <std::int64_t kRows>
SIDESTREAM_INLINE void multiply_rows(const float* a, std::int64_t k, const float* strip, float* c,
                                     std::int64_t c_stride, bool adds) {
  Vector low[kRows], high[kRows];
#pragma GCC unroll 6
  for (std::int64_t i = 0; i < kRows; ++i) low[i] = high[i] = Vector{};
  for (std::int64_t p = 0; p < k; ++p) {
    const Vector b_low = load(strip + p * kTileColumns);
    const Vector b_high = load(strip + p * kTileColumns + kLanes);
#pragma GCC unroll 6
    for (std::int64_t i = 0; i < kRows; ++i) {
      const float element = a[i * kLeftStride + p];
      low[i] += element * b_low;
      high[i] += element * b_high;
    }
  }
#pragma GCC unroll 6
  for (std::int64_t i = 0; i < kRows; ++i) {
    float* row = c + i * c_stride;
    store(adds ? load(row) + low[i] : low[i], row);
    store(adds ? load(row + kLanes) + high[i] : high[i], row + kLanes);
  }
}

SIDESTREAM_INLINE void multiply_tile(const float* a, std::int64_t rows, std::int64_t k,
                                     const float* strip, float* c, std::int64_t c_stride,
                                     bool adds) {
  switch (rows) {
    case 1:
      return multiply_rows<1>(a, k, strip, c, c_stride, adds);
    case 2:
      return multiply_rows<2>(a, k, strip, c, c_stride, adds);
    case 3:
      return multiply_rows<3>(a, k, strip, c, c_stride, adds);
    case 4:
      return multiply_rows<4>(a, k, strip, c, c_stride, adds);
    case 5:
      return multiply_rows<5>(a, k, strip, c, c_stride, adds);
    default:
      return multiply_rows<6>(a, k, strip, c, c_stride, adds);
  }
}

// The same where C has fewer columns than a strip.
SIDESTREAM_INLINE void multiply_partial_tile(const float* a, std::int64_t rows, std::int64_t k,
                                             const float* strip, std::int64_t columns, float* c,
                                             std::int64_t c_stride, bool adds) {
  alignas(64) float tile[kTileRows * kTileColumns];
  multiply_tile(a, rows, k, strip, tile, kTileColumns, false);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float& element = c[i * c_stride + j];
      element = (adds ? element : 0.0f) + tile[i * kTileColumns + j];
    }
  }
}

// Rows of A side by side and in fp32: read once for every strip, from few pages and without the
// conflicts of rows a power of two apart.
struct LeftBlock {
  alignas(64) float data[kRowBlock * kLeftStride];
};

template <typename T>
SIDESTREAM_INLINE void fill(LeftBlock& block, const T* a, std::int64_t stride, std::int64_t rows,
                            std::int64_t k) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t p = 0; p < k; ++p)
      block.data[i * kLeftStride + p] = static_cast<float>(a[i * stride + p]);
  }
}

// Part of k for one block of rows: every strip goes past them.
template <typename T>
SIDESTREAM_INLINE void multiply_block(const LeftBlock& left, std::int64_t m, std::int64_t k,
                                      const T* b, const BlockProduct<T>& product, float* c,
                                      bool adds, Strip& strip) {
  constexpr std::int64_t kElementsOfWord = sizeof(T) == 2 ? 2 : 1;
  for (std::int64_t column = 0; column < product.n; column += kTileColumns) {
    const std::int64_t columns = std::min(kTileColumns, product.n - column);
    fill(strip, b + column * kElementsOfWord, product.b_stride, k, columns);
    for (std::int64_t row = 0; row < m; row += kTileRows) {
      const std::int64_t rows = std::min(kTileRows, m - row);
      const float* a = left.data + row * kLeftStride;
      float* tile = c + row * product.c_stride + column;
      columns == kTileColumns
          ? multiply_tile(a, rows, k, strip.data, tile, product.c_stride, adds)
          : multiply_partial_tile(a, rows, k, strip.data, columns, tile, product.c_stride, adds);
    }
  }
}

template <typename T>
SIDESTREAM_INLINE void multiply_of(const BlockProduct<T>& product) {
  Strip strip;
  LeftBlock left;
  for (std::int64_t depth = 0; depth < product.k; depth += kDepth) {
    const std::int64_t k = std::min(kDepth, product.k - depth);
    const bool adds = depth > 0 || product.accumulate == Accumulate::kYes;
    for (std::int64_t first = 0; first < product.m; first += kRowBlock) {
      const std::int64_t m = std::min(kRowBlock, product.m - first);
      fill(left, product.a + first * product.a_stride + depth, product.a_stride, m, k);
      multiply_block(left, m, k, product.b + depth * product.b_stride, product,
                     product.c + first * product.c_stride, adds, strip);
    }
  }
}

// Clones by hand: those of the compiler are left out of sanitized programs, which need this to be
// fast.
#if defined(__x86_64__)
#define SIDESTREAM_WITH_FMA __attribute__((target("avx2,fma")))
bool has_fma() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
bool has_wider_units() { return __builtin_cpu_supports("avx512f") != 0; }
#else
#define SIDESTREAM_WITH_FMA
bool has_fma() { return true; }
bool has_wider_units() { return false; }
#endif

template <typename T>
SIDESTREAM_WITH_FMA void multiply_with_fma(const BlockProduct<T>& product) {
  multiply_of(product);
}

template <typename T>
void multiply_without_fma(const BlockProduct<T>& product) {
  multiply_of(product);
}

template <typename T>
void multiply_on_this(const BlockProduct<T>& product) {
  static const bool with_fma = has_fma();
  with_fma ? multiply_with_fma(product) : multiply_without_fma(product);
}

}  // namespace

bool has_avx512() noexcept { return has_wider_units(); }

void multiply_widened(const BlockProduct<float>& product) { multiply_on_this(product); }
void multiply_widened(const BlockProduct<BFloat16>& product) { multiply_on_this(product); }

}  // namespace sidestream::model::kernels
