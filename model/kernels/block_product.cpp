#include "model/kernels/block_product.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

// Vectors of a processor, and the tile of C whose sums fill its registers but those for two vectors
// of B and one element of A.
struct EightLanes {
  using Vector = float __attribute__((vector_size(32)));
  using Words = std::uint32_t __attribute__((vector_size(32)));
  static constexpr std::int64_t kLanes = 8, kTileRows = 6, kTileColumns = 16;
};
struct SixteenLanes {
  using Vector = float __attribute__((vector_size(64)));
  using Words = std::uint32_t __attribute__((vector_size(64)));
  static constexpr std::int64_t kLanes = 16, kTileRows = 14, kTileColumns = 32;
};

constexpr std::int64_t kDepth = 256;    // of a strip: at most 32 kB, in a first-level cache
constexpr std::int64_t kRowBlock = 96;  // of A: with its strips in a second-level cache
constexpr std::int64_t kLeftStride =
    kDepth + 16;  // a power of two would map rows to few sets of the cache

template <typename Vector>
SIDESTREAM_INLINE Vector load(const float* source) {
  Vector vector;
  std::memcpy(&vector, source, sizeof(vector));
  return vector;
}

template <typename Vector>
SIDESTREAM_INLINE void store(const Vector& vector, float* target) {
  std::memcpy(target, &vector, sizeof(vector));
}

// Columns of B as [k][columns of a tile].
template <typename Lanes>
struct Strip {
  alignas(64) float data[kDepth * Lanes::kTileColumns];
};

template <typename Lanes>
SIDESTREAM_INLINE void fill(Strip<Lanes>& strip, const float* b, std::int64_t stride,
                            std::int64_t k, std::int64_t columns) {
  using Vector = typename Lanes::Vector;
  constexpr std::int64_t kWidth = Lanes::kTileColumns;
  if (columns == kWidth) {
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::int64_t j = 0; j < kWidth; j += Lanes::kLanes)
        store(load<Vector>(b + p * stride + j), strip.data + p * kWidth + j);
    }
    return;
  }
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t j = 0; j < kWidth; ++j)
      strip.data[p * kWidth + j] = j < columns ? b[p * stride + j] : 0.0f;
  }
}

// Words of a panel hold rows 2p and 2p + 1 of B in their halves.
template <typename Lanes>
SIDESTREAM_INLINE void widen_words(const void* words, float* even_row, float* odd_row) {
  constexpr std::uint32_t kUpperHalf = 0xFFFF0000u;
  typename Lanes::Words pairs;
  std::memcpy(&pairs, words, sizeof(pairs));
  const typename Lanes::Words even = pairs << 16, odd = pairs & kUpperHalf;
  std::memcpy(even_row, &even, sizeof(even));
  std::memcpy(odd_row, &odd, sizeof(odd));
}

template <typename Lanes>
SIDESTREAM_INLINE void fill(Strip<Lanes>& strip, const BFloat16* b, std::int64_t stride,
                            std::int64_t k, std::int64_t columns) {
  constexpr std::int64_t kWidth = Lanes::kTileColumns;
  std::uint32_t words[kWidth] = {};
  for (std::int64_t p = 0; p < k; p += 2) {
    const void* row = b + p * stride;
    if (columns < kWidth) {
      std::memcpy(words, row, static_cast<std::size_t>(columns) * sizeof(words[0]));
      row = words;
    }
    float* even_row = strip.data + p * kWidth;
    for (std::int64_t j = 0; j < kWidth; j += Lanes::kLanes)
      widen_words<Lanes>(static_cast<const std::uint32_t*>(row) + j, even_row + j,
                         even_row + kWidth + j);
  }
}

// Where a tile of C goes.
struct Target {
  float* c = nullptr;
  std::int64_t stride = 0;
  bool adds = false;
};

// kRows rows of a tile of C.
template <typename Lanes, std::int64_t kRows>
SIDESTREAM_INLINE void multiply_rows(const float* a, std::int64_t k, const float* strip,
                                     const Target& target) {
  using Vector = typename Lanes::Vector;
  Vector low[kRows], high[kRows];
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kRows; ++i) low[i] = high[i] = Vector{};
  for (std::int64_t p = 0; p < k; ++p) {
    const auto b_low = load<Vector>(strip + p * Lanes::kTileColumns);
    const auto b_high = load<Vector>(strip + p * Lanes::kTileColumns + Lanes::kLanes);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
      const float element = a[i * kLeftStride + p];
      low[i] += element * b_low;
      high[i] += element * b_high;
    }
  }
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kRows; ++i) {
    float* row = target.c + i * target.stride;
    store(target.adds ? load<Vector>(row) + low[i] : low[i], row);
    store(target.adds ? load<Vector>(row + Lanes::kLanes) + high[i] : high[i], row + Lanes::kLanes);
  }
}

template <typename Lanes, std::int64_t kRows = Lanes::kTileRows>
SIDESTREAM_INLINE void multiply_tile(const float* a, std::int64_t rows, std::int64_t k,
                                     const float* strip, const Target& target) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_tile<Lanes, kRows - 1>(a, rows, k, strip, target);
  }
  multiply_rows<Lanes, kRows>(a, k, strip, target);
}

// The same where C has fewer columns than a strip.
template <typename Lanes>
SIDESTREAM_INLINE void multiply_partial_tile(const float* a, std::int64_t rows, std::int64_t k,
                                             const float* strip, std::int64_t columns,
                                             const Target& target) {
  constexpr std::int64_t kWidth = Lanes::kTileColumns;
  alignas(64) float tile[Lanes::kTileRows * kWidth];
  multiply_tile<Lanes>(a, rows, k, strip, {.c = tile, .stride = kWidth});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float& element = target.c[i * target.stride + j];
      element = (target.adds ? element : 0.0f) + tile[i * kWidth + j];
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

// One strip past all rows of a block, in tiles of about the same height.
template <typename Lanes>
SIDESTREAM_INLINE void multiply_strip(const LeftBlock& left, std::int64_t m, std::int64_t k,
                                      const float* strip, std::int64_t columns, Target target) {
  std::int64_t tiles = (m + Lanes::kTileRows - 1) / Lanes::kTileRows;
  for (std::int64_t row = 0; row < m; --tiles) {
    const std::int64_t rows = (m - row + tiles - 1) / tiles;
    const float* a = left.data + row * kLeftStride;
    columns == Lanes::kTileColumns
        ? multiply_tile<Lanes>(a, rows, k, strip, target)
        : multiply_partial_tile<Lanes>(a, rows, k, strip, columns, target);
    target.c += rows * target.stride;
    row += rows;
  }
}

// Part of k for one block of rows: every strip goes past them.
template <typename Lanes, typename T>
SIDESTREAM_INLINE void multiply_block(const LeftBlock& left, std::int64_t m, std::int64_t depth,
                                      const BlockProduct<T>& product, Target target) {
  constexpr std::int64_t kElementsOfWord = sizeof(T) == 2 ? 2 : 1;
  const std::int64_t k = std::min(kDepth, product.k - depth);
  const T* b = product.b + depth * product.b_stride;
  Strip<Lanes> strip;
  for (std::int64_t column = 0; column < product.n; column += Lanes::kTileColumns) {
    const std::int64_t columns = std::min(Lanes::kTileColumns, product.n - column);
    fill<Lanes>(strip, b + column * kElementsOfWord, product.b_stride, k, columns);
    multiply_strip<Lanes>(left, m, k, strip.data, columns, target);
    target.c += columns;
  }
}

template <typename Lanes, typename T>
SIDESTREAM_INLINE void multiply_in(const BlockProduct<T>& product) {
  LeftBlock left;
  for (std::int64_t depth = 0; depth < product.k; depth += kDepth) {
    const std::int64_t k = std::min(kDepth, product.k - depth);
    const bool adds = depth > 0 || product.accumulate == Accumulate::kYes;
    for (std::int64_t first = 0; first < product.m; first += kRowBlock) {
      const std::int64_t m = std::min(kRowBlock, product.m - first);
      fill(left, product.a + first * product.a_stride + depth, product.a_stride, m, k);
      multiply_block<Lanes>(
          left, m, depth, product,
          {.c = product.c + first * product.c_stride, .stride = product.c_stride, .adds = adds});
    }
  }
}

// Clones by hand: those of the compiler are left out of sanitized programs, which need this to be
// fast.
#if defined(__x86_64__)
#define SIDESTREAM_WITH_AVX2 __attribute__((target("avx2,fma")))
#define SIDESTREAM_WITH_AVX512 \
  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
bool has_sixteen_lanes() {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0;
}
bool has_tiles() { return __builtin_cpu_supports("amx-bf16") != 0; }
bool has_fast_dot_products() {
  return __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_is("amd") != 0;
}
#else
#define SIDESTREAM_WITH_AVX2
#define SIDESTREAM_WITH_AVX512
bool has_avx2() { return true; }
bool has_sixteen_lanes() { return false; }
bool has_tiles() { return false; }
bool has_fast_dot_products() { return false; }
#endif

template <typename T>
SIDESTREAM_WITH_AVX512 void multiply_with_avx512(const BlockProduct<T>& product) {
  multiply_in<SixteenLanes>(product);
}

template <typename T>
SIDESTREAM_WITH_AVX2 void multiply_with_avx2(const BlockProduct<T>& product) {
  multiply_in<EightLanes>(product);
}

template <typename T>
void multiply_with_any(const BlockProduct<T>& product) {
  multiply_in<EightLanes>(product);
}

template <typename T>
void multiply_on_this(const BlockProduct<T>& product) {
  static const auto best = has_sixteen_lanes() ? multiply_with_avx512<T>
                           : has_avx2()        ? multiply_with_avx2<T>
                                               : multiply_with_any<T>;
  best(product);
}

}  // namespace

bool has_avx512() noexcept { return has_sixteen_lanes(); }
bool has_faster_bf16() noexcept { return has_tiles() || has_fast_dot_products(); }

void multiply_widened(const BlockProduct<float>& product) { multiply_on_this(product); }
void multiply_widened(const BlockProduct<BFloat16>& product) { multiply_on_this(product); }

}  // namespace sidestream::model::kernels
