// Elementary functions that the compiler turns into vector code inside SIDESTREAM_VECTORIZED
// functions. fp32 only.
#pragma once

#include <cstdint>

#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {

// e^x with about 1e-7 relative error between -87 and 88, and clamped outside; NaN stays NaN.
// Cephes' polynomial.
SIDESTREAM_INLINE float exp_of(float x) {
  constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number in the low bits
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * kLog2E + kRound;
  const std::int32_t exponent = __builtin_bit_cast(std::int32_t, shifted) - 0x4B400000;
  const float whole = shifted - kRound;
  float r = x - whole * kLn2High;
  r = r - whole * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float y = p * r * r + r + 1.0f;
  // Unsigned: a NaN's bits may wrap.
  const std::uint32_t bits =
      __builtin_bit_cast(std::uint32_t, y) + (static_cast<std::uint32_t>(exponent) << 23);
  return __builtin_bit_cast(float, bits);
}

// GELU in its tanh form is x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
struct Gelu {
  float value;
  float slope;
};

SIDESTREAM_INLINE Gelu gelu_of(float x) {
  constexpr float kLinear = 1.5957691216057308f;  // 2 sqrt(2/pi)
  constexpr float kCubic = 1.5957691216057308f * 0.044715f;
  const float square = x * x;
  const float sigmoid = 1.0f / (1.0f + exp_of(-x * (kLinear + kCubic * square)));
  const float value = x * sigmoid;
  return {value, sigmoid + value * (1.0f - sigmoid) * (kLinear + 3.0f * kCubic * square)};
}

}  // namespace sidestream::model::kernels
