// As many numbers at a time as the processor has lanes, as vectors of the compiler: for loops that
// it vectorises badly by itself, as sums, which it joins one by one, and rows whose last vector is
// partly masked.
//
//   struct Scale {
//     template <typename L>
//     SIDESTREAM_INLINE static void run(const float* x, std::int64_t n, float* out) {
//       for_vectors<L>(n, [=](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
//         store_lanes<L>(load_lanes<L>(x + i, count) * 2.0f, count, out + i);
//       });
//     }
//   };
//   run_in_lanes<Scale>(x, n, out);
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/dtype.hpp"
#include "core/base/vectorize.hpp"
#include "model/kernels/block_product.hpp"

namespace sidestream::model::kernels {

struct SixteenLanes {
  using Floats = float __attribute__((vector_size(64)));
  using Words = std::uint32_t __attribute__((vector_size(64)));
  using Ints = std::int32_t __attribute__((vector_size(64)));
  using Halves = std::uint16_t __attribute__((vector_size(32)));
  static constexpr std::int64_t kCount = 16;
  static constexpr Ints kIndex = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};
// Of a processor with an instruction that rounds to bf16 (AVX512_BF16), which counts denormal
// numbers as zero, as training does everywhere else.
struct SixteenRoundingLanes : SixteenLanes {};
struct EightLanes {
  using Floats = float __attribute__((vector_size(32)));
  using Words = std::uint32_t __attribute__((vector_size(32)));
  using Ints = std::int32_t __attribute__((vector_size(32)));
  using Halves = std::uint16_t __attribute__((vector_size(16)));
  static constexpr std::int64_t kCount = 8;
  static constexpr Ints kIndex = {0, 1, 2, 3, 4, 5, 6, 7};
};
constexpr std::int64_t kMostLanes = SixteenLanes::kCount;

template <typename L>
SIDESTREAM_INLINE typename L::Floats load_lanes(const float* source) {
  typename L::Floats lanes;
  std::memcpy(&lanes, source, sizeof(lanes));
  return lanes;
}

template <typename L>
SIDESTREAM_INLINE typename L::Words words_of(const typename L::Halves& halves) {
#if defined(__x86_64__)
  if constexpr (L::kCount == SixteenLanes::kCount) {  // GCC 12 makes six instructions of it
    typename L::Words words;
    asm("vpmovzxwd %1, %0" : "=v"(words) : "vm"(halves));
    return words;
  }
#endif
  return __builtin_convertvector(halves, typename L::Words);
}

template <typename L>
SIDESTREAM_INLINE typename L::Floats widened(const typename L::Halves& halves) {
  return __builtin_bit_cast(typename L::Floats, words_of<L>(halves) << 16);
}

template <typename L>
SIDESTREAM_INLINE typename L::Floats load_lanes(const core::BFloat16* source) {
  typename L::Halves halves;
  std::memcpy(&halves, source, sizeof(halves));
  return widened<L>(halves);
}

// The first n, then zeros.
template <typename L, typename T>
SIDESTREAM_INLINE typename L::Floats load_lanes(const T* source, std::int64_t n) {
  if (n == L::kCount) return load_lanes<L>(source);
  T some[L::kCount] = {};
  for (std::int64_t i = 0; i < n; ++i) some[i] = source[i];
  return load_lanes<L>(some);
}

// The first n only.
template <typename L>
SIDESTREAM_INLINE void store_lanes(const typename L::Floats& lanes, std::int64_t n, float* target) {
  if (n == L::kCount) {
    std::memcpy(target, &lanes, sizeof(lanes));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) target[i] = lanes[i];
}

// To nearest even; a NaN stays one.
template <typename L>
SIDESTREAM_INLINE typename L::Halves rounded(const typename L::Floats& lanes) {
  using Words = typename L::Words;
#if defined(__x86_64__)
  if constexpr (std::is_same_v<L, SixteenRoundingLanes>) {
    typename L::Halves halves;
    asm("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(lanes));
    return halves;
  }
#endif
  const Words bits = __builtin_bit_cast(Words, lanes);
  const Words nearest = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const Words words = (bits & 0x7FFFFFFFu) > 0x7F800000u ? Words{} + 0x7FC0u : nearest;
  return __builtin_convertvector(words, typename L::Halves);
}

template <typename L>
SIDESTREAM_INLINE void store_lanes(const typename L::Floats& lanes, std::int64_t n,
                                   core::BFloat16* target) {
  const typename L::Halves halves = rounded<L>(lanes);
  if (n == L::kCount) {
    std::memcpy(static_cast<void*>(target), &halves, sizeof(halves));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) target[i].bits = halves[i];
}

// To memory that no cache reads first, where vectors follow each other to the end of a line of 64
// bytes; finish_streams() before anyone else may read it. Eight lanes need AVX2.
template <typename L, typename Vector>
SIDESTREAM_INLINE void stream(const Vector& vector, void* target) {
#if defined(__x86_64__)
  typename L::Words words;
  static_assert(sizeof(words) == sizeof(vector));
  std::memcpy(&words, &vector, sizeof(words));
  asm volatile("vmovntdq %1, %0" : "=m"(*static_cast<typename L::Words*>(target)) : "v"(words));
#else
  std::memcpy(target, &vector, sizeof(vector));
#endif
}

// Two vectors: a line of bf16, or two of fp32.
template <typename L>
SIDESTREAM_INLINE void stream_lines(const typename L::Floats& low, const typename L::Floats& high,
                                    core::BFloat16* target) {
  const typename L::Halves halves[2] = {rounded<L>(low), rounded<L>(high)};
  typename L::Words line;
  static_assert(sizeof(line) == sizeof(halves));
  std::memcpy(&line, halves, sizeof(line));
  stream<L>(line, target);
}
template <typename L>
SIDESTREAM_INLINE void stream_lines(const typename L::Floats& low, const typename L::Floats& high,
                                    float* target) {
  stream<L>(low, target);
  stream<L>(high, target + L::kCount);
}

SIDESTREAM_INLINE void finish_streams() {
#if defined(__x86_64__)
  asm volatile("sfence" ::: "memory");
#endif
}

// As they are after they were stored as T.
template <typename L, typename T>
SIDESTREAM_INLINE typename L::Floats as_stored(const typename L::Floats& lanes) {
  if constexpr (std::is_same_v<T, float>) {
    return lanes;
  } else {
    return widened<L>(rounded<L>(lanes));
  }
}

// body(first, count) for every vector of a row; the count is a constant but for a shorter last one.
template <typename L, typename Body>
SIDESTREAM_INLINE void for_vectors(std::int64_t n, Body body) {
  const std::int64_t whole = n / L::kCount * L::kCount;
  for (std::int64_t i = 0; i < whole; i += L::kCount) body(i, L::kCount);
  if (whole < n) body(whole, n - whole);
}

// out[i] = element(i, count), a vector at a time.
template <typename L, typename T, typename Element>
SIDESTREAM_INLINE void compute_lanes(T* out, std::int64_t n, Element element) {
  for_vectors<L>(
      n, [=](std::int64_t i, std::int64_t count)
             __attribute__((always_inline)) { store_lanes<L>(element(i, count), count, out + i); });
}

// Which of the lanes from number `first` on come before `end`.
template <typename L>
SIDESTREAM_INLINE typename L::Ints lanes_before(std::int64_t first, std::int64_t end) {
  return L::kIndex < typename L::Ints{} + static_cast<std::int32_t>(end - first);
}

// Lanes past the end of a row count as nothing.
template <typename L>
SIDESTREAM_INLINE typename L::Floats first_lanes(const typename L::Floats& lanes, std::int64_t n) {
  if (n == L::kCount) return lanes;
  return lanes_before<L>(0, n) ? lanes : typename L::Floats{};
}

template <typename Floats>
SIDESTREAM_INLINE Floats larger(const Floats& a, const Floats& b) {
  return a > b ? a : b;
}

// All lanes in one, each half with the other.
template <typename L, std::int32_t kStep = L::kCount / 2, typename Join>
SIDESTREAM_INLINE float joined(const typename L::Floats& x, Join join) {
  constexpr typename L::Ints kOther = L::kIndex ^ kStep;
  const typename L::Floats both = join(x, __builtin_shuffle(x, kOther));
  if constexpr (kStep == 1) {
    return both[0];
  } else {
    return joined<L, kStep / 2>(both, join);
  }
}

template <typename L>
SIDESTREAM_INLINE float sum_of(const typename L::Floats& x) {
  using Floats = typename L::Floats;
  return joined<L>(
      x, [](const Floats& a, const Floats& b) __attribute__((always_inline)) { return a + b; });
}

template <typename L>
SIDESTREAM_INLINE float max_of(const typename L::Floats& x) {
  using Floats = typename L::Floats;
  return joined<L>(
      x,
      [](const Floats& a, const Floats& b) __attribute__((always_inline)) { return larger(a, b); });
}

// Of element(i, count) over a row: four sums side by side, for an addition takes four cycles.
template <typename L, typename Element>
SIDESTREAM_INLINE float sum_over(std::int64_t n, Element element) {
  constexpr std::int64_t kSums = 4, kStep = kSums * L::kCount;
  typename L::Floats sums[kSums] = {};
  const std::int64_t whole = n / kStep * kStep;
  for (std::int64_t i = 0; i < whole; i += kStep) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < kSums; ++j) sums[j] += element(i + j * L::kCount, L::kCount);
  }
  for_vectors<L>(
      n - whole, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        sums[0] += first_lanes<L>(element(whole + i, count), count);
      });
  return sum_of<L>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Clones by hand, for the width is a type here.
#if defined(__x86_64__)
template <typename Kernel, typename... Arguments>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void in_sixteen_lanes(
    const Arguments&... arguments) {
  Kernel::template run<SixteenLanes>(arguments...);
}
template <typename Kernel, typename... Arguments>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void in_rounding_lanes(
    const Arguments&... arguments) {
  Kernel::template run<SixteenRoundingLanes>(arguments...);
}
template <typename Kernel, typename... Arguments>
__attribute__((target("avx2,fma"))) void in_eight_lanes(const Arguments&... arguments) {
  Kernel::template run<EightLanes>(arguments...);
}
#else
template <typename Kernel, typename... Arguments>
void in_sixteen_lanes(const Arguments&... arguments) {
  Kernel::template run<SixteenLanes>(arguments...);
}
template <typename Kernel, typename... Arguments>
void in_rounding_lanes(const Arguments&... arguments) {
  Kernel::template run<SixteenLanes>(arguments...);
}
template <typename Kernel, typename... Arguments>
void in_eight_lanes(const Arguments&... arguments) {
  Kernel::template run<EightLanes>(arguments...);
}
#endif
template <typename Kernel, typename... Arguments>
void in_any_lanes(const Arguments&... arguments) {
  Kernel::template run<EightLanes>(arguments...);
}

// Kernel::run<L>(arguments...), always inline, with the lanes of this processor.
template <typename Kernel, typename... Arguments>
void run_in_lanes(const Arguments&... arguments) {
  static const auto best = has_avx512_bf16() ? in_rounding_lanes<Kernel, Arguments...>
                           : has_avx512()    ? in_sixteen_lanes<Kernel, Arguments...>
                           : has_avx2()      ? in_eight_lanes<Kernel, Arguments...>
                                             : in_any_lanes<Kernel, Arguments...>;
  best(arguments...);
}

}  // namespace sidestream::model::kernels
