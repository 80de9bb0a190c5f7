// Floats of a thread from and to a chunk of T. On a GPU by the instructions that convert two
// numbers at once; elsewhere number by number. Both round to nearest even and keep NaN a NaN.
#pragma once

#include <type_traits>

#include "model/device/chunk.hpp"

namespace sidestream::model::device {

template <typename T>
constexpr bool kIsNarrow = sizeof(T) == 2;

#if defined(__CUDA_ARCH__)
template <typename T>
__device__ __forceinline__ unsigned narrow_pair(float first, float second) {
  unsigned pair;
  if constexpr (std::is_same_v<T, core::BFloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

__device__ __forceinline__ float half_of(unsigned bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(bits)));
  return value;
}

template <typename T>
__device__ __forceinline__ float2 widen_pair(unsigned pair) {
  if constexpr (std::is_same_v<T, core::BFloat16>)
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000u)};
  else
    return {half_of(pair & 0xFFFFu), half_of(pair >> 16)};
}
#endif

// values: kChunk<T> of them.
template <typename T>
SIDESTREAM_INLINE Chunk<T> chunk_of(const float* values) {
#if defined(__CUDA_ARCH__)
  if constexpr (kIsNarrow<T>) {
    unsigned pairs[4];
    for (int i = 0; i < 4; ++i) pairs[i] = narrow_pair<T>(values[2 * i], values[2 * i + 1]);
    return __builtin_bit_cast(Chunk<T>, make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
  } else
#endif
  {
    Chunk<T> chunk;
    for (int i = 0; i < kChunk<T>; ++i) chunk.at[i] = T(values[i]);
    return chunk;
  }
}

template <typename T>
SIDESTREAM_INLINE void widen_chunk(const Chunk<T>& chunk, float* values) {
#if defined(__CUDA_ARCH__)
  if constexpr (kIsNarrow<T>) {
    const uint4 raw = __builtin_bit_cast(uint4, chunk);
    const unsigned pairs[4] = {raw.x, raw.y, raw.z, raw.w};
    for (int i = 0; i < 4; ++i) {
      const float2 two = widen_pair<T>(pairs[i]);
      values[2 * i] = two.x;
      values[2 * i + 1] = two.y;
    }
  } else
#endif
  {
    for (int i = 0; i < kChunk<T>; ++i) values[i] = static_cast<float>(chunk.at[i]);
  }
}

// What becomes of a number that is written as a T and read again.
template <typename T>
SIDESTREAM_INLINE float rounded_to(float value) {
#if defined(__CUDA_ARCH__)
  if constexpr (kIsNarrow<T>)
    return widen_pair<T>(narrow_pair<T>(value, 0.0f)).x;
  else
#endif
    return static_cast<float>(T(value));
}

}  // namespace sidestream::model::device
