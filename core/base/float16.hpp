// IEEE 754's binary16 on the host and in kernels, by its bits: no processor, compiler or CUDA
// header has to know the type.
#pragma once

#include <cstdint>

#include "core/base/vectorize.hpp"

namespace sidestream::core {

// Conversion from float rounds to nearest even, to infinity from 65520 on, and keeps NaN a NaN;
// conversion to float is exact. Neither depends on whether denormal floats are flushed to zero.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  SIDESTREAM_INLINE explicit Float16(float value) : bits(round(value)) {}
  SIDESTREAM_INLINE explicit operator float() const { return widen(bits); }

 private:
  static constexpr std::uint32_t kRebias = (127u - 15u) << 23;      // of exponents
  static constexpr std::uint32_t kSmallest = kRebias + (1u << 23);  // normal fp16, as a float
  static constexpr std::uint32_t kTooLarge = kRebias + (31u << 23);
  static constexpr std::uint32_t kHalf = 126u
                                         << 23;  // 0.5f: its last bit is fp16's smallest number

  SIDESTREAM_INLINE static std::uint16_t round(float value) {
    const auto wide = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t magnitude = wide & 0x7FFFFFFFu;
    const float above_half = __builtin_bit_cast(float, magnitude) + 0.5f;
    const std::uint32_t denormal = __builtin_bit_cast(std::uint32_t, above_half) - kHalf;
    const std::uint32_t normal = (magnitude - kRebias + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
    const std::uint32_t large = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
    const std::uint32_t finite = magnitude < kSmallest ? denormal : normal;
    const std::uint32_t rounded = magnitude < kTooLarge ? finite : large;
    return static_cast<std::uint16_t>(((wide >> 16) & 0x8000u) | rounded);
  }

  SIDESTREAM_INLINE static float widen(std::uint16_t narrow) {
    const std::uint32_t shifted = (narrow & 0x7FFFu) << 13;
    const std::uint32_t exponent = shifted & (31u << 23);
    const float denormal =
        __builtin_bit_cast(float, shifted + kSmallest) - __builtin_bit_cast(float, kSmallest);
    const std::uint32_t special = exponent == (31u << 23) ? 2 * kRebias : kRebias;
    const std::uint32_t normal = shifted + special;
    const std::uint32_t magnitude =
        exponent == 0 ? __builtin_bit_cast(std::uint32_t, denormal) : normal;
    const std::uint32_t sign = static_cast<std::uint32_t>(narrow & 0x8000u) << 16;
    return __builtin_bit_cast(float, magnitude | sign);
  }
};

}  // namespace sidestream::core
