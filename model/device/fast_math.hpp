// Functions that a GPU has an instruction for, by that instruction: powers of two and reciprocals
// within two units of fp32's last place, in one step where the exact ones take ten. Denormal
// results are zero.
#pragma once

#include <cmath>

#include "core/base/vectorize.hpp"

namespace sidestream::model::device {

SIDESTREAM_INLINE float power_of_two(float exponent) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
  return result;
#else
  return std::exp2(exponent);
#endif
}

constexpr float kLogTwoOfE = 1.4426950408889634f;

// Rounding x to a power of two costs another |x| units of 2^-24.
SIDESTREAM_INLINE float exponential(float x) { return power_of_two(x * kLogTwoOfE); }

// 0 of an infinite number.
SIDESTREAM_INLINE float reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / x;
#endif
}

}  // namespace sidestream::model::device
