#include "core/optim/block_squares.hpp"

#include "core/base/vectorize.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sidestream::optim {
namespace {

using core::BFloat16;

// Independent partial sums: enough for four AVX-512 accumulators, which add up in the same order as
// the loop of any other processor.
constexpr std::size_t kLanes = 32;

// The sums of whole vectors, and what is left of the block.
template <typename T>
SIDESTREAM_INLINE double finish(double* lanes, const T* rest, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double value = static_cast<float>(rest[i]);
    lanes[i] += value * value;
  }
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

template <typename T>
SIDESTREAM_INLINE double squares_of(const T* x, std::size_t n) {
  double lanes[kLanes] = {};
  const std::size_t whole = n / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = static_cast<float>(x[i + lane]);
      lanes[lane] += value * value;
    }
  }
  return finish(lanes, x + whole, n - whole);
}

SIDESTREAM_VECTORIZED double on_any(const float* x, std::size_t n) { return squares_of(x, n); }
SIDESTREAM_VECTORIZED double on_any(const BFloat16* x, std::size_t n) { return squares_of(x, n); }

#if defined(__x86_64__)
// By hand: of the conversions GCC 12 makes twice as many instructions.
#define SIDESTREAM_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

SIDESTREAM_AVX512 inline __m512d load_eight(const float* x) {
  return _mm512_cvtps_pd(_mm256_loadu_ps(x));
}

SIDESTREAM_AVX512 inline __m512d load_eight(const BFloat16* x) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  const __m256i words = _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
  return _mm512_cvtps_pd(_mm256_castsi256_ps(words));
}

// Gradients come from memory: a processor's own prefetchers reach a third of what a core can read.
template <typename T>
SIDESTREAM_AVX512 inline void expect(const T* x) {
  constexpr std::size_t kAhead = 2048, kLine = 64;
  for (std::size_t line = 0; line < kLanes * sizeof(T); line += kLine)
    _mm_prefetch(reinterpret_cast<const char*>(x + kAhead) + line, _MM_HINT_T0);
}

template <typename T>
SIDESTREAM_AVX512 double with_avx512(const T* x, std::size_t n) {
  constexpr std::size_t kWidth = 8, kSums = kLanes / kWidth;
  __m512d sums[kSums] = {};
  const std::size_t whole = n / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    expect(x + i);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kSums; ++v) {
      const __m512d values = load_eight(x + i + v * kWidth);
      sums[v] = _mm512_fmadd_pd(values, values, sums[v]);
    }
  }
  alignas(64) double lanes[kLanes];
#pragma GCC unroll 4
  for (std::size_t v = 0; v < kSums; ++v) _mm512_store_pd(lanes + v * kWidth, sums[v]);
  return finish(lanes, x + whole, n - whole);
}

template <typename T>
double best_of(const T* x, std::size_t n) {
  static const bool has_avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return has_avx512 ? with_avx512(x, n) : on_any(x, n);
}
#else
template <typename T>
double best_of(const T* x, std::size_t n) {
  return on_any(x, n);
}
#endif

}  // namespace

double block_squares(const float* x, std::size_t n) { return best_of(x, n); }
double block_squares(const BFloat16* x, std::size_t n) { return best_of(x, n); }

// fp16 trains on GPUs.
double block_squares(const core::Float16* x, std::size_t n) { return squares_of(x, n); }

}  // namespace sidestream::optim
