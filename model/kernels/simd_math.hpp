// Elementary functions that the compiler turns into vector code inside SIDESTREAM_VECTORIZED
// functions. fp32 only.
#pragma once

#include <cstdint>

#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {

// e^x with about 1e-7 relative error between -86 and 86; beyond, within a factor of two of the
// bounds 2^-125 and 2^125. NaN and infinities give NaN. Cephes' polynomial.
//
// The power of two is bounded as a whole number: bounding x with comparisons makes the compiler
// compute every later step for the bounds too, with denormal results that cost a hundred times a
// normal one.
SIDESTREAM_INLINE float exp_of(float x) {
  constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number in the low bits
  constexpr std::uint32_t kRoundBits = 0x4B400000u;
  constexpr std::int32_t kBound = 125;
  const float shifted = x * kLog2E + kRound;
  std::int32_t exponent =
      static_cast<std::int32_t>(__builtin_bit_cast(std::uint32_t, shifted) - kRoundBits);
  exponent = exponent < -kBound ? -kBound : exponent;
  exponent = exponent > kBound ? kBound : exponent;
  const float whole = shifted - kRound;
  float r = x - whole * kLn2High;
  r = r - whole * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float power = __builtin_bit_cast(float, static_cast<std::uint32_t>(exponent + 127) << 23);
  return (p * r * r + r + 1.0f) * power;
}

// GELU in its tanh form is x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
struct Gelu {
  float value;
  float slope;
};

// The sign of x with a magnitude of at most 12, where the sigmoid has long settled; beyond, x cubed
// would leave exp_of's range. On bits, for the reason given there.
SIDESTREAM_INLINE float bounded(float x) {
  constexpr std::uint32_t kSign = 0x80000000u, kTwelve = 0x41400000u;
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t magnitude = bits & ~kSign;
  return __builtin_bit_cast(float, (bits & kSign) | (magnitude < kTwelve ? magnitude : kTwelve));
}

SIDESTREAM_INLINE Gelu gelu_of(float x) {
  constexpr float kLinear = 1.5957691216057308f;  // 2 sqrt(2/pi)
  constexpr float kCubic = 1.5957691216057308f * 0.044715f;
  const float b = bounded(x), square = b * b;
  const float sigmoid = 1.0f / (1.0f + exp_of(-b * (kLinear + kCubic * square)));
  const float value = x * sigmoid;
  return {value, sigmoid + value * (1.0f - sigmoid) * (kLinear + 3.0f * kCubic * square)};
}

}  // namespace sidestream::model::kernels
