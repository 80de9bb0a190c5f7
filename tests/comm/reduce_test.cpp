// The sum in rank order against a naive loop over ranks, bit for bit.
#include "comm/reduce.hpp"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "comm/slice.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

using core::BFloat16;
using core::DType;

// Wide exponents, signs that cancel, denormals, infinities: any other order of the sum gives other
// bits.
std::vector<std::vector<float>> nasty_floats(int ranks, std::size_t count) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> mantissa(-1.0F, 1.0F);
  std::uniform_int_distribution<int> exponent(-30, 30);
  std::vector<std::vector<float>> values(static_cast<std::size_t>(ranks));
  for (auto& of_rank : values) {
    for (std::size_t i = 0; i < count; ++i)
      of_rank.push_back(std::ldexp(mantissa(random), exponent(random)));
  }
  values[0][1] = std::numeric_limits<float>::denorm_min();
  values[0][2] = std::numeric_limits<float>::infinity();
  values[0][3] = -0.0F;
  return values;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<std::vector<std::byte>> sum_in_place(std::vector<std::vector<std::byte>> buffers,
                                                 std::size_t count, DType dtype) {
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (auto& buffer : buffers) {
    inputs.push_back(buffer.data());
    outputs.push_back(buffer.data());
  }
  sum_in_order(inputs, outputs, count, dtype);
  return buffers;
}

class SumInOrderTest : public ::testing::TestWithParam<int> {};

TEST_P(SumInOrderTest, float32_equalsNaiveLoop) {
  const std::size_t count = 5003;
  const auto values = nasty_floats(GetParam(), count);
  std::vector<float> expected = values[0];
  for (std::size_t r = 1; r < values.size(); ++r) {
    for (std::size_t i = 0; i < count; ++i) expected[i] = expected[i] + values[r][i];
  }
  std::vector<std::vector<std::byte>> buffers;
  for (const auto& of_rank : values) buffers.push_back(bytes_of(of_rank));

  const auto sums = sum_in_place(buffers, count, DType::kFloat32);

  for (const auto& sum : sums) EXPECT_EQ(std::memcmp(sum.data(), expected.data(), sum.size()), 0);
}

TEST_P(SumInOrderTest, bfloat16_addsInFloatAndRoundsOnce) {
  const std::size_t count = 3001;
  const auto values = nasty_floats(GetParam(), count);
  std::vector<std::vector<std::byte>> buffers;
  std::vector<float> expected(count);
  for (std::size_t r = 0; r < values.size(); ++r) {
    std::vector<BFloat16> narrow;
    for (const float value : values[r]) narrow.emplace_back(value);
    for (std::size_t i = 0; i < count; ++i) {
      const auto wide = static_cast<float>(narrow[i]);
      expected[i] = r == 0 ? wide : expected[i] + wide;
    }
    buffers.push_back(bytes_of(narrow));
  }
  std::vector<BFloat16> rounded;
  for (const float value : expected) rounded.emplace_back(value);

  const auto sums = sum_in_place(buffers, count, DType::kBFloat16);

  for (const auto& sum : sums) EXPECT_EQ(std::memcmp(sum.data(), rounded.data(), sum.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SumInOrderTest, ::testing::Values(1, 2, 3, 4, 7));

TEST(SumInOrderTest, float16_addsInFloat) {
  // 2048 + 1 is 2048 in float16, so adding pairs in float16 would lose both ones.
  const std::vector<_Float16> big = {static_cast<_Float16>(2048.0F)};
  const std::vector<_Float16> one = {static_cast<_Float16>(1.0F)};

  const auto sums = sum_in_place({bytes_of(big), bytes_of(one), bytes_of(one)}, 1, DType::kFloat16);

  _Float16 sum = 0;
  std::memcpy(&sum, sums[2].data(), sizeof(sum));
  EXPECT_EQ(static_cast<float>(sum), 2050.0F);
}

TEST(SumInOrderTest, bfloat16_keepsNan) {
  const std::vector<BFloat16> nan = {BFloat16(std::numeric_limits<float>::quiet_NaN())};

  const auto sums = sum_in_place({bytes_of(nan), bytes_of(nan)}, 1, DType::kBFloat16);

  BFloat16 sum;
  std::memcpy(&sum, sums[0].data(), sizeof(sum));
  EXPECT_TRUE(std::isnan(static_cast<float>(sum)));
}

// Ranges of a buffer begin at any element, where no word does.
TEST(SumInOrderTest, bfloat16_atAnOddElement_isTheSame) {
  const std::size_t count = 1001;
  const auto values = nasty_floats(2, count + 1);
  std::vector<BFloat16> first, last, expected;
  for (std::size_t i = 0; i <= count; ++i) {
    first.emplace_back(values[0][i]);
    last.emplace_back(values[1][i]);
    expected.emplace_back(static_cast<float>(first[i]) + static_cast<float>(last[i]));
  }
  const auto from_one = [](std::vector<BFloat16>& buffer) {
    return reinterpret_cast<std::byte*>(buffer.data() + 1);
  };
  const std::array<const std::byte*, 2> inputs = {from_one(first), from_one(last)};
  const std::array<std::byte*, 2> outputs = {from_one(first), from_one(last)};

  sum_in_order(inputs, outputs, count, DType::kBFloat16);

  EXPECT_EQ(std::memcmp(first.data() + 1, expected.data() + 1, count * sizeof(BFloat16)), 0);
  EXPECT_EQ(std::memcmp(last.data() + 1, expected.data() + 1, count * sizeof(BFloat16)), 0);
}

// Neighbours share a word while they are added.
TEST(SumInOrderTest, bfloat16_whatIsNoNumberLeavesItsNeighboursAlone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> first = {kNan, 1.0F, 2.0F, kInfinity, -kNan, 3.0F, 4.0F};
  const std::vector<float> last = {1.0F, 0.5F, 0.25F, -kInfinity, kNan, -3.0F, kNan};
  std::vector<BFloat16> of_first, of_last;
  for (const float value : first) of_first.emplace_back(value);
  for (const float value : last) of_last.emplace_back(value);

  const auto sums =
      sum_in_place({bytes_of(of_first), bytes_of(of_last)}, first.size(), DType::kBFloat16);

  for (const auto& bytes : sums) {
    std::vector<BFloat16> sum(first.size());
    std::memcpy(sum.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      const float expected = first[i] + last[i];
      const auto found = static_cast<float>(sum[i]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << "at " << i;
      } else {
        EXPECT_EQ(found, expected) << "at " << i;
      }
    }
  }
}

TEST(SumInOrderTest, int64_wrapsAround) {
  const std::vector<std::int64_t> largest = {std::numeric_limits<std::int64_t>::max()};
  const std::vector<std::int64_t> one = {1};

  const auto sums = sum_in_place({bytes_of(largest), bytes_of(one)}, 1, DType::kInt64);

  std::int64_t sum = 0;
  std::memcpy(&sum, sums[0].data(), sizeof(sum));
  EXPECT_EQ(sum, std::numeric_limits<std::int64_t>::min());
}

TEST(SumInOrderTest, float32_doesNotDependOnTheCallersFlushMode) {
  const std::vector<float> denormal(40, std::numeric_limits<float>::denorm_min());
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero

  const auto sums =
      sum_in_place({bytes_of(denormal), bytes_of(denormal)}, denormal.size(), DType::kFloat32);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);

  std::uint32_t bits = 0;
  std::memcpy(&bits, sums[1].data(), sizeof(bits));
  EXPECT_EQ(bits, 2u);
  EXPECT_EQ(after & 0x8040u, 0x8040u);
}

TEST(SumInOrderTest, requireSummable_refusesOthers) {
  EXPECT_THROW(require_summable(DType::kUInt8), core::Error);
  EXPECT_THROW(require_summable(DType::kFloat64), core::Error);
  EXPECT_NO_THROW(require_summable(DType::kFloat16));
}

TEST(SlicingTest, of_coversEverythingOnce) {
  for (const std::size_t count : {0ul, 1ul, 2ul, 7ul, 1000ul}) {
    std::size_t next = 0;
    for (int part = 0; part < 3; ++part) {
      const Slice slice = Slicing(count, 3).of(part);
      EXPECT_EQ(slice.begin, next);
      EXPECT_LE(slice.count, count / 3 + 64);
      next += slice.count;
    }
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace sidestream::comm
