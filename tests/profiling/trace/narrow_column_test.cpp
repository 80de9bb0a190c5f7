#include "profiling/trace/narrow_column.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace sidestream::trace {
namespace {

template <typename Value>
class NarrowColumnTest : public testing::Test {};

using Values = testing::Types<std::uint64_t, std::uint32_t>;
TYPED_TEST_SUITE(NarrowColumnTest, Values);

TYPED_TEST(NarrowColumnTest, numbers_of_any_size_come_back) {
  constexpr TypeParam kLargest = std::numeric_limits<TypeParam>::max();
  constexpr TypeParam kHalf = kLargest >> (sizeof(TypeParam) * 4);
  const auto value_of = [](std::size_t row) -> TypeParam {
    if (row % 1000 == 0) return kLargest - static_cast<TypeParam>(row);
    if (row % 100 == 0) {  // around the largest that is narrow
      return static_cast<TypeParam>(kHalf - 1 + row / 100 % 3);
    }
    return static_cast<TypeParam>(row * 3);
  };
  NarrowColumn<TypeParam> column;
  constexpr std::size_t kRows = 20'000;  // several blocks
  for (std::size_t row = 0; row < kRows; ++row) column.push_back(value_of(row));

  ASSERT_EQ(column.size(), kRows);
  for (std::size_t row = 0; row < kRows; ++row) ASSERT_EQ(column[row], value_of(row)) << row;
}

}  // namespace
}  // namespace sidestream::trace
