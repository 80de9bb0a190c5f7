// Element types that travel between ranks and into files, and the two 16-bit floating types on the
// host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/vectorize.hpp"

namespace sidestream::core {

enum class DType : std::uint8_t {
  kFloat32,
  kBFloat16,
  kFloat16,
  kInt64,
  kInt32,
  kUInt16,
  kUInt8,
  kFloat64
};

// Bytes of one element. Throws Error for a value outside the enumeration.
std::size_t size_of(DType dtype);

// "float32", "bfloat16", ... for messages.
std::string_view name_of(DType dtype);

// bfloat16: the upper half of a float. Conversion from float rounds to nearest even and keeps NaN a
// NaN. Always inline, and without std::bit_cast: a vectorised clone calls whatever is compiled for
// another processor.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  SIDESTREAM_INLINE explicit BFloat16(float value) : bits(round(value)) {}
  SIDESTREAM_INLINE explicit operator float() const {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  SIDESTREAM_INLINE static std::uint16_t round(float value) {
    const auto wide = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t rounded = (wide + 0x7FFFu + ((wide >> 16) & 1u)) >> 16;
    // A mask and no choice: a branch here keeps every loop around it from being vectorised.
    const std::uint32_t nan = 0u - static_cast<std::uint32_t>((wide & 0x7FFFFFFFu) > 0x7F800000u);
    return static_cast<std::uint16_t>((rounded & ~nan) | (0x7FC0u & nan));
  }
};

}  // namespace sidestream::core
