// Elementary functions that the compiler turns into vector code inside SIDESTREAM_VECTORIZED
// functions: F is float, or the Floats of some lanes (lanes.hpp). fp32 only.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/dtype.hpp"
#include "core/base/vectorize.hpp"
#include "model/kernels/lanes.hpp"

namespace sidestream::model::kernels {

template <typename F>
struct BitsOf;
template <>
struct BitsOf<float> {
  using Unsigned = std::uint32_t;
};
template <>
struct BitsOf<EightLanes::Floats> {
  using Unsigned = EightLanes::Words;
};
template <>
struct BitsOf<SixteenLanes::Floats> {
  using Unsigned = SixteenLanes::Words;
};

// 1.5 * 2^23: adding it rounds to a whole number in the low bits.
constexpr float kRound = 12582912.0f;

// The sign of x with a magnitude of at most `limit`; NaN is the limit, too. On bits: bounding with
// comparisons makes the compiler compute every later step for the bounds as well, with denormal
// results that cost a hundred times a normal one.
template <typename F>
SIDESTREAM_INLINE F bounded(const F& x, float limit) {
  using Unsigned = typename BitsOf<F>::Unsigned;
  const Unsigned sign = Unsigned{} + 0x80000000u;
  const Unsigned most = Unsigned{} + __builtin_bit_cast(std::uint32_t, limit);
  const auto bits = __builtin_bit_cast(Unsigned, x);
  const Unsigned magnitude = bits & ~sign;
  return __builtin_bit_cast(F, (bits & sign) | (magnitude < most ? magnitude : most));
}

#if defined(__x86_64__)
template <>
SIDESTREAM_INLINE SixteenLanes::Floats bounded(const SixteenLanes::Floats& x, float limit) {
  SixteenLanes::Floats result;
  asm("vrangeps $2, %2, %1, %0"
      : "=v"(result)
      : "v"(x), "v"(SixteenLanes::Floats(SixteenLanes::Floats{} + limit)));
  return result;
}
#endif

// The whole number next to x, and two to its power: x is at most 125, and at least -125.
template <typename F>
struct Power {
  F whole, value;
};
template <typename F>
SIDESTREAM_INLINE Power<F> power_of_two(const F& x) {
  using Unsigned = typename BitsOf<F>::Unsigned;
  constexpr std::uint32_t kRoundBits = 0x4B400000u;
  const F shifted = x + kRound;
  const Unsigned biased = __builtin_bit_cast(Unsigned, shifted) - (kRoundBits - 127u);
  return {shifted - kRound, __builtin_bit_cast(F, biased << 23)};
}

constexpr float kLog2E = 1.44269504088896341f;

// e^x / 2^whole, where whole is the whole number next to log2(e) x. Cephes' polynomial.
template <typename F>
SIDESTREAM_INLINE F exp_less_powers_of_two(const F& x, const F& whole) {
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  F r = x - whole * kLn2High;
  r = r - whole * kLn2Low;
  F p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * r * r + r + 1.0f;
}

// e^x with about 1e-7 relative error, for x between -86.6 and 86.6.
template <typename F>
SIDESTREAM_INLINE F exp_within_bounds(const F& x) {
  const Power<F> power = power_of_two(F(x * kLog2E));
  return exp_less_powers_of_two(x, power.whole) * power.value;
}

// Sixteen lanes have instructions for it, as for some of what follows. Intel's manual, volume 2:
// VREDUCEPS (x less the whole number next to it), VRNDSCALEPS (that whole number), VSCALEFPS (times
// two to a power, down to zero and up to infinity), VRCP14PS (a reciprocal with 6e-5 relative
// error, a sixtieth of bf16's), VRANGEPS (here the smaller magnitude, with the sign of the first
// operand).
#if defined(__x86_64__)
template <>
SIDESTREAM_INLINE SixteenLanes::Floats exp_within_bounds(const SixteenLanes::Floats& x) {
  SixteenLanes::Floats whole, power;
  asm("vrndscaleps $8, %1, %0" : "=v"(whole) : "v"(SixteenLanes::Floats(x * kLog2E)));
  asm("vscalefps %2, %1, %0" : "=v"(power) : "v"(exp_less_powers_of_two(x, whole)), "v"(whole));
  return power;
}
#endif

// The same anywhere: beyond, that of the bounds. NaN and infinities give NaN.
template <typename F>
SIDESTREAM_INLINE F exp_of(const F& x) {
  return exp_within_bounds(bounded(x, 86.6f)) + x * 0.0f;
}

// 2^f, |f| <= 1/2, with 3e-6 relative error: for what is rounded to bf16, whose own error is 4e-3.
// Minimax polynomial by Remez' algorithm.
template <typename F>
SIDESTREAM_INLINE F short_exp2_of_fraction(const F& f) {
  F p = f * 9.570101909e-3f + 5.591786032e-2f;
  p = p * f + 2.402474483e-1f;
  p = p * f + 6.931218147e-1f;
  return p * f + 9.999992614e-1f;
}

// 2^x as exact between -125 and 125, beyond as exp_of.
template <typename F>
SIDESTREAM_INLINE F short_exp2_of(const F& x) {
  const F b = bounded(x, 125.0f);
  const Power<F> power = power_of_two(b);
  return short_exp2_of_fraction(F(b - power.whole)) * power.value + x * 0.0f;
}

#if defined(__x86_64__)
template <>
SIDESTREAM_INLINE SixteenLanes::Floats short_exp2_of(const SixteenLanes::Floats& x) {
  SixteenLanes::Floats fraction, power;
  asm("vreduceps $8, %1, %0" : "=v"(fraction) : "v"(x));
  asm("vscalefps %2, %1, %0"
      : "=v"(power)
      : "v"(short_exp2_of_fraction(fraction)), "v"(SixteenLanes::Floats(x - fraction)));
  return power;
}
#endif

// e^x as exact as a result of type T needs.
template <typename T, typename F>
SIDESTREAM_INLINE F exp_for(const F& x) {
  if constexpr (std::is_same_v<T, core::BFloat16>) return short_exp2_of(F(x * kLog2E));
  return exp_of(x);
}

// s = 1 / (1 + e^-y), and 1 - s, which is not to be had from s near 1.
template <typename F>
struct Sigmoid {
  F value, complement;
};

template <typename F>
SIDESTREAM_INLINE Sigmoid<F> sigmoid_of(const F& y) {
  const F value = 1.0f / (1.0f + exp_of(F(-y)));
  return {value, 1.0f - value};
}

#if defined(__x86_64__)
// |y| <= 86.6. A step of Newton's makes the reciprocal as exact as fp32 is; a division takes
// longer.
template <>
SIDESTREAM_INLINE Sigmoid<SixteenLanes::Floats> sigmoid_of(const SixteenLanes::Floats& y) {
  const SixteenLanes::Floats power = exp_within_bounds(SixteenLanes::Floats(-y));
  const SixteenLanes::Floats divisor = power + 1.0f;
  SixteenLanes::Floats reciprocal;
  asm("vrcp14ps %1, %0" : "=v"(reciprocal) : "v"(divisor));
  reciprocal = reciprocal + reciprocal * (1.0f - divisor * reciprocal);
  return {reciprocal, power * reciprocal};
}
#endif

// 1 / (1 + 2^x) with 1e-5 relative error between -100 and 100, and nonsense beyond: for bf16, like
// short_exp2_of. The power of two is added to the exponent as it is. The reciprocal begins with its
// bits negated (6 % off), a parabola fitted to that (0.12 %), and a step of Newton's: a division
// takes longer than all of this.
template <typename F>
SIDESTREAM_INLINE Sigmoid<F> short_sigmoid_of_minus(const F& x) {
  using Unsigned = typename BitsOf<F>::Unsigned;
  const F shifted = x + kRound;
  const F power = __builtin_bit_cast(
      F, __builtin_bit_cast(Unsigned, short_exp2_of_fraction(F(x - (shifted - kRound)))) +
             (__builtin_bit_cast(Unsigned, shifted) << 23));
  const F divisor = power + 1.0f;
  F reciprocal = __builtin_bit_cast(F, 0x7EF00000u - __builtin_bit_cast(Unsigned, divisor));
  reciprocal = reciprocal * (2.03212865f - 1.03116935f * (divisor * reciprocal));
  reciprocal = reciprocal * (2.0f - divisor * reciprocal);
  return {reciprocal, power * reciprocal};
}

#if defined(__x86_64__)
template <>
SIDESTREAM_INLINE Sigmoid<SixteenLanes::Floats> short_sigmoid_of_minus(
    const SixteenLanes::Floats& x) {
  const SixteenLanes::Floats power = short_exp2_of(x);
  SixteenLanes::Floats reciprocal;
  asm("vrcp14ps %1, %0" : "=v"(reciprocal) : "v"(SixteenLanes::Floats(power + 1.0f)));
  return {reciprocal, power * reciprocal};
}
#endif

// GELU in its tanh form is x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
template <typename F>
struct Gelu {
  F value, slope;
};

// As exact as a result of type T needs.
template <typename T, typename F>
SIDESTREAM_INLINE Gelu<F> gelu_for(const F& x) {
  constexpr float kLinear = 1.5957691216057308f;  // 2 sqrt(2/pi)
  constexpr float kCubic = 1.5957691216057308f * 0.044715f;
  constexpr bool kShort = std::is_same_v<T, core::BFloat16>;
  // Where the sigmoid has long settled; beyond, x cubed would leave the range of what follows.
  const F b = bounded(x, kShort ? 9.0f : 9.6f), square = b * b;
  Sigmoid<F> sigmoid;
  if constexpr (kShort) {
    sigmoid = short_sigmoid_of_minus(F(b * (-kLinear * kLog2E - kCubic * kLog2E * square)));
  } else {
    sigmoid = sigmoid_of(F(b * (kLinear + kCubic * square)));
  }
  const F value = x * sigmoid.value;
  return {value, sigmoid.value + value * sigmoid.complement * (kLinear + 3.0f * kCubic * square)};
}

}  // namespace sidestream::model::kernels
