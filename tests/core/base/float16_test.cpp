#include "core/base/float16.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace sidestream::core {
namespace {

// The compiler's own type is the oracle.
std::uint16_t bits_of(_Float16 value) { return std::bit_cast<std::uint16_t>(value); }

TEST(Float16Test, widening_is_exact_for_every_pattern) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    Float16 half;
    half.bits = static_cast<std::uint16_t>(pattern);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(half.bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(half))) << pattern;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(half)),
              std::bit_cast<std::uint32_t>(expected))
        << pattern;
  }
}

TEST(Float16Test, rounding_is_to_nearest_even) {
  std::mt19937 draw(7);
  const auto expect_same = [](float value) {
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(Float16(value))));
      return;
    }
    ASSERT_EQ(Float16(value).bits, bits_of(static_cast<_Float16>(value))) << std::hexfloat << value;
  };
  for (int i = 0; i < 2'000'000; ++i)
    expect_same(std::bit_cast<float>(static_cast<std::uint32_t>(draw())));
  // Halfway between neighbours and beside it, from the denormal numbers to infinity.
  for (std::uint32_t pattern = 0; pattern < 0x7C00; ++pattern) {
    Float16 half;
    half.bits = static_cast<std::uint16_t>(pattern);
    const float low = static_cast<float>(half);
    half.bits = static_cast<std::uint16_t>(pattern + 1);
    const float high = pattern + 1 == 0x7C00 ? 65536.0f : static_cast<float>(half);
    const float middle = low + (high - low) / 2;
    for (const float value : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e6f)}) {
      expect_same(value);
      expect_same(-value);
    }
  }
}

TEST(Float16Test, what_is_too_large_becomes_infinity) {
  EXPECT_EQ(static_cast<float>(Float16(65519.9f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Float16(65520.0f))));
  EXPECT_TRUE(std::isinf(static_cast<float>(Float16(1e30f))));
}

}  // namespace
}  // namespace sidestream::core
