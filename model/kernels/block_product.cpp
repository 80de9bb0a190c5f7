#include "model/kernels/block_product.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/vectorize.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

// Vectors of a processor, and the tile of C whose sums fill its registers but those for two vectors
// of B and one element of A.
struct EightLaneTile {
  using Vector = float __attribute__((vector_size(32)));
  using Words = std::uint32_t __attribute__((vector_size(32)));
  using Halves = std::uint16_t __attribute__((vector_size(16)));
  static constexpr std::int64_t kLanes = 8, kTileRows = 6, kTileColumns = 16;
};
struct SixteenLaneTile {
  using Vector = float __attribute__((vector_size(64)));
  using Words = std::uint32_t __attribute__((vector_size(64)));
  using Halves = std::uint16_t __attribute__((vector_size(32)));
  static constexpr std::int64_t kLanes = 16, kTileRows = 14, kTileColumns = 32;
};

constexpr std::int64_t kDepth = kWidenedDepth;  // a strip of at most 32 kB: in a first-level cache
constexpr std::int64_t kRowBlock = 96;          // of A: with its strips in a second-level cache

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
SIDESTREAM_INLINE void fill_row(const float* source, float* target) {
  for (std::int64_t j = 0; j < Lanes::kTileColumns; j += Lanes::kLanes)
    store(load<typename Lanes::Vector>(source + j), target + j);
}

template <typename Lanes>
SIDESTREAM_INLINE void fill_row(const BFloat16* source, float* target) {
  for (std::int64_t j = 0; j < Lanes::kTileColumns; j += Lanes::kLanes) {
    typename Lanes::Halves halves;
    std::memcpy(&halves, source + j, sizeof(halves));
    const typename Lanes::Words words = __builtin_convertvector(halves, typename Lanes::Words)
                                        << 16;
    std::memcpy(target + j, &words, sizeof(words));
  }
}

template <typename Lanes, typename T>
SIDESTREAM_INLINE void fill_from_rows(Strip<Lanes>& strip, const T* b, std::int64_t stride,
                                      std::int64_t k, std::int64_t columns) {
  constexpr std::int64_t kWidth = Lanes::kTileColumns;
  T few[kWidth] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    const T* row = b + p * stride;
    if (columns < kWidth) row = std::copy_n(row, columns, few) - columns;
    fill_row<Lanes>(row, strip.data + p * kWidth);
  }
}

// Words of a packed panel hold rows 2p and 2p + 1 of B in their halves.
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
SIDESTREAM_INLINE void fill_from_packed(Strip<Lanes>& strip, const BFloat16* b, std::int64_t stride,
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

template <typename Lanes>
SIDESTREAM_INLINE void fill_from_packed(Strip<Lanes>& strip, const float* b, std::int64_t stride,
                                        std::int64_t k, std::int64_t columns) {
  fill_from_rows(strip, b, stride, k, columns);
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
      const float element = a[i * kWidenedStride + p];
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

SIDESTREAM_INLINE void copy_columns(const float* tile, std::int64_t tile_stride, std::int64_t rows,
                                    std::int64_t columns, const Target& target) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float& element = target.c[i * target.stride + j];
      element = (target.adds ? element : 0.0f) + tile[i * tile_stride + j];
    }
  }
}

// Rows side by side: read once for every strip, from few pages and without the conflicts of rows a
// power of two apart.
template <typename T>
SIDESTREAM_INLINE void widen(const T* a, std::int64_t stride, std::int64_t rows, std::int64_t k,
                             float* target, std::int64_t target_stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t p = 0; p < k; ++p)
      target[i * target_stride + p] = static_cast<float>(a[i * stride + p]);
  }
}

// Rows of A, and a strip that passes them all.
struct WidenedStrip {
  const float* a = nullptr;
  std::int64_t m = 0, k = 0;
  const float* strip = nullptr;
  std::int64_t columns = 0;  // of C; a strip has as many or more
};
using MultiplyStrip = void (*)(WidenedStrip product, Target target);

// In tiles of about the same height; those with fewer columns than a strip by way of a buffer.
template <typename Lanes>
SIDESTREAM_INLINE void multiply_widened_strip(WidenedStrip product, Target target) {
  constexpr std::int64_t kWidth = Lanes::kTileColumns;
  const bool whole = product.columns == kWidth;
  alignas(64) float buffer[Lanes::kTileRows * kWidth];
  std::int64_t tiles = (product.m + Lanes::kTileRows - 1) / Lanes::kTileRows;
  for (std::int64_t row = 0; row < product.m; --tiles) {
    const std::int64_t rows = (product.m - row + tiles - 1) / tiles;
    multiply_tile<Lanes>(product.a, rows, product.k, product.strip,
                         whole ? target : Target{.c = buffer, .stride = kWidth});
    if (!whole) copy_columns(buffer, kWidth, rows, product.columns, target);
    product.a += rows * kWidenedStride;
    target.c += rows * target.stride;
    row += rows;
  }
}

template <typename Lanes, typename T>
SIDESTREAM_INLINE void multiply_in(const PartProduct<T>& product, MultiplyStrip multiply_strip) {
  const bool packed = product.layout == PanelLayout::kPacked;
  const std::int64_t elements_of_column = packed && sizeof(T) == 2 ? 2 : 1;
  Strip<Lanes> strip;
  for (std::int64_t column = 0; column < product.n; column += Lanes::kTileColumns) {
    const std::int64_t columns = std::min(Lanes::kTileColumns, product.n - column);
    const T* b = product.b + column * elements_of_column;
    packed ? fill_from_packed(strip, b, product.b_stride, product.k, columns)
           : fill_from_rows(strip, b, product.b_stride, product.k, columns);
    multiply_strip(
        {.a = product.a, .m = product.m, .k = product.k, .strip = strip.data, .columns = columns},
        {.c = product.c + column,
         .stride = product.c_stride,
         .adds = product.accumulate == Accumulate::kYes});
  }
}

// Rows of A and part of k at a time.
template <typename Lanes, typename T>
SIDESTREAM_INLINE void multiply_in(const BlockProduct<T>& product, MultiplyStrip multiply_strip) {
  alignas(64) float left[kRowBlock * kWidenedStride];
  for (std::int64_t depth = 0; depth < product.k; depth += kDepth) {
    const std::int64_t k = std::min(kDepth, product.k - depth);
    const bool adds = depth > 0 || product.accumulate == Accumulate::kYes;
    for (std::int64_t first = 0; first < product.m; first += kRowBlock) {
      const std::int64_t m = std::min(kRowBlock, product.m - first);
      widen(product.a + first * product.a_stride + depth, product.a_stride, m, k, left,
            kWidenedStride);
      multiply_in<Lanes>(PartProduct<T>{.m = m,
                                        .n = product.n,
                                        .k = k,
                                        .a = left,
                                        .b = product.b + depth * product.b_stride,
                                        .b_stride = product.b_stride,
                                        .layout = PanelLayout::kPacked,
                                        .c = product.c + first * product.c_stride,
                                        .c_stride = product.c_stride,
                                        .accumulate = adds ? Accumulate::kYes : Accumulate::kNo},
                         multiply_strip);
    }
  }
}

// Clones by hand: those of the compiler are left out of sanitized programs, which need this to be
// fast.
#if defined(__x86_64__)
#define SIDESTREAM_WITH_AVX2 __attribute__((target("avx2,fma")))
#define SIDESTREAM_WITH_AVX512 \
  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
bool has_eight_lanes() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
bool has_sixteen_lanes() {
  return has_eight_lanes() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0;
}
bool has_rounding_lanes() {
  return has_sixteen_lanes() && __builtin_cpu_supports("avx512bf16") != 0;
}
// Clang has no name for it: bit 22 of leaf 7 (Intel's manual, volume 2, CPUID).
bool processor_has_tiles() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 22 & 1) != 0;
}
// The system keeps tiles when it changes threads (XCR0, bits 17 and 18; Intel's manual, volume 1,
// chapter 13), and lets this process have some (Linux 5.16 and newer).
bool system_has_tiles() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool says_what_it_keeps =
      __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 27 & 1) != 0;
  if (!says_what_it_keeps) return false;
  unsigned kept = 0, high = 0;
  __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  constexpr unsigned kTiles = 3u << 17;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, <asm/prctl.h>
  return (kept & kTiles) == kTiles && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
bool has_tiles() { return processor_has_tiles() && system_has_tiles(); }
bool amd_has_dot_products() {
  return __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_is("amd") != 0;
}
bool amd_has_sixteen_lanes() { return has_sixteen_lanes() && __builtin_cpu_is("amd") != 0; }
bool amd_has_eight_lanes_only() {
  return has_eight_lanes() && !has_sixteen_lanes() && __builtin_cpu_is("amd") != 0;
}
#else
#define SIDESTREAM_WITH_AVX2
#define SIDESTREAM_WITH_AVX512
bool has_eight_lanes() { return true; }
bool has_sixteen_lanes() { return false; }
bool has_rounding_lanes() { return false; }
bool has_tiles() { return false; }
bool amd_has_dot_products() { return false; }
bool amd_has_sixteen_lanes() { return false; }
bool amd_has_eight_lanes_only() { return false; }
#endif

// The loops that are long to compile stand alone, once for each kind of processor.
#define SIDESTREAM_ALONE __attribute__((noinline))

SIDESTREAM_ALONE SIDESTREAM_WITH_AVX512 void strip_with_avx512(WidenedStrip product,
                                                               Target target) {
  multiply_widened_strip<SixteenLaneTile>(product, target);
}

SIDESTREAM_ALONE SIDESTREAM_WITH_AVX2 void strip_with_avx2(WidenedStrip product, Target target) {
  multiply_widened_strip<EightLaneTile>(product, target);
}

SIDESTREAM_ALONE void strip_with_any(WidenedStrip product, Target target) {
  multiply_widened_strip<EightLaneTile>(product, target);
}

template <typename Product>
SIDESTREAM_WITH_AVX512 void multiply_with_avx512(const Product& product) {
  multiply_in<SixteenLaneTile>(product, strip_with_avx512);
}

template <typename Product>
SIDESTREAM_WITH_AVX2 void multiply_with_avx2(const Product& product) {
  multiply_in<EightLaneTile>(product, strip_with_avx2);
}

template <typename Product>
void multiply_with_any(const Product& product) {
  multiply_in<EightLaneTile>(product, strip_with_any);
}

template <typename Product>
void multiply_on_this(const Product& product) {
  static const auto best = has_sixteen_lanes() ? multiply_with_avx512<Product>
                           : has_eight_lanes() ? multiply_with_avx2<Product>
                                               : multiply_with_any<Product>;
  best(product);
}

SIDESTREAM_VECTORIZED void widen_floats(const float* a, std::int64_t stride, std::int64_t rows,
                                        std::int64_t columns, float* target,
                                        std::int64_t target_stride) {
  widen(a, stride, rows, columns, target, target_stride);
}

SIDESTREAM_VECTORIZED void widen_bf16(const BFloat16* a, std::int64_t stride, std::int64_t rows,
                                      std::int64_t columns, float* target,
                                      std::int64_t target_stride) {
  widen(a, stride, rows, columns, target, target_stride);
}

}  // namespace

bool has_amx() noexcept {
  static const bool has =
      has_tiles();  // CPUID leaves a virtual machine, and products ask each time
  return has;
}
bool has_avx512() noexcept { return has_sixteen_lanes(); }
bool has_avx512_bf16() noexcept { return has_rounding_lanes(); }
bool has_avx2() noexcept { return has_eight_lanes(); }
bool has_amd_avx512() noexcept {
  static const bool has = amd_has_sixteen_lanes();
  return has;
}
bool has_amd_avx2() noexcept {
  static const bool has = amd_has_eight_lanes_only();
  return has;
}
bool has_faster_bf16() noexcept { return has_amx() || amd_has_dot_products(); }

void multiply_widened(const BlockProduct<float>& product) { multiply_on_this(product); }
void multiply_widened(const BlockProduct<BFloat16>& product) { multiply_on_this(product); }
void multiply_part(const PartProduct<float>& product) { multiply_on_this(product); }
void multiply_part(const PartProduct<BFloat16>& product) { multiply_on_this(product); }

void widen_rows(const float* a, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                float* target, std::int64_t target_stride) {
  widen_floats(a, stride, rows, columns, target, target_stride);
}

void widen_rows(const BFloat16* a, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                float* target, std::int64_t target_stride) {
  widen_bf16(a, stride, rows, columns, target, target_stride);
}

}  // namespace sidestream::model::kernels
