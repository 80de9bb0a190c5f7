#include "core/base/dtype.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "core/base/error.hpp"

namespace sidestream::core {
namespace {

// Round to nearest even by comparing distances to the two neighbours, in double: slow and obvious.
std::uint16_t reference_bits(float value) {
  if (std::isnan(value)) return 0x7FC0;
  const auto wide = std::bit_cast<std::uint32_t>(value);
  const auto low = static_cast<std::uint16_t>(wide >> 16);
  if (std::isinf(value)) return low;
  const auto high = static_cast<std::uint16_t>(low + 1);
  const auto value_of = [](std::uint16_t bits) {
    const double exact = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    return std::isinf(exact) ? std::copysign(std::ldexp(1.0, 128), exact)
                             : exact;  // the next power of two
  };
  const double to_low = std::abs(value - value_of(low));
  const double to_high = std::abs(value - value_of(high));
  if (to_low != to_high) return to_low < to_high ? low : high;
  return (low & 1) == 0 ? low : high;
}

TEST(BFloat16Test, rounding_equals_reference_on_random_bits) {
  std::mt19937 random(7);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) continue;

    ASSERT_EQ(BFloat16(value).bits, reference_bits(value)) << std::hexfloat << value;
  }
}

TEST(BFloat16Test, rounding_equals_reference_on_every_tie_and_its_neighbours) {
  for (std::uint32_t upper = 0; upper < 0x7F80; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const auto value = std::bit_cast<float>(upper << 16 | lower);

      ASSERT_EQ(BFloat16(value).bits, reference_bits(value)) << std::hexfloat << value;
      ASSERT_EQ(BFloat16(-value).bits, reference_bits(-value)) << std::hexfloat << -value;
    }
  }
}

TEST(BFloat16Test, special_values) {
  const float infinity = std::numeric_limits<float>::infinity();

  EXPECT_EQ(static_cast<float>(BFloat16(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(BFloat16(-infinity)), -infinity);
  EXPECT_EQ(static_cast<float>(BFloat16(std::numeric_limits<float>::max())), infinity);
  // A NaN whose payload sits in the lower half must not become infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0xFFFFFFFFu)))));
  EXPECT_EQ(BFloat16(-0.0f).bits, 0x8000);
}

TEST(BFloat16Test, widening_and_rounding_returns_every_value) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    BFloat16 narrow;
    narrow.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(narrow);
    if (std::isnan(wide)) continue;

    ASSERT_EQ(BFloat16(wide).bits, bits);
  }
}

TEST(DTypeTest, size_and_name_of_every_type) {
  EXPECT_EQ(size_of(DType::kFloat64), 8u);
  EXPECT_EQ(size_of(DType::kInt64), 8u);
  EXPECT_EQ(size_of(DType::kFloat32), 4u);
  EXPECT_EQ(size_of(DType::kInt32), 4u);
  EXPECT_EQ(size_of(DType::kBFloat16), 2u);
  EXPECT_EQ(size_of(DType::kFloat16), 2u);
  EXPECT_EQ(size_of(DType::kUInt16), 2u);
  EXPECT_EQ(size_of(DType::kUInt8), 1u);
  EXPECT_EQ(name_of(DType::kBFloat16), "bfloat16");
}

TEST(DTypeTest, value_outside_the_enumeration_throws) {
  const auto unknown = static_cast<DType>(99);

  EXPECT_THROW(size_of(unknown), Error);
  EXPECT_THROW(name_of(unknown), Error);
}

}  // namespace
}  // namespace sidestream::core
