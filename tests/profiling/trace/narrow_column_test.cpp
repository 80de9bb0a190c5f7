#include "profiling/trace/narrow_column.hpp"

#include <gtest/gtest.h>

namespace sidestream::trace {
namespace {

TEST(NarrowColumnTest, numbers_of_any_size_come_back) {
  const auto value_of = [](std::uint64_t row) {
    if (row % 1000 == 0) return UINT64_MAX - row;
    if (row % 100 == 0) return 0xFFFFFFFEu + row / 100 % 3;  // around the largest that is narrow
    return row * 7919;
  };
  NarrowColumn column;
  constexpr std::uint64_t kRows = 20'000;  // several blocks
  for (std::uint64_t row = 0; row < kRows; ++row) column.push_back(value_of(row));

  ASSERT_EQ(column.size(), kRows);
  for (std::uint64_t row = 0; row < kRows; ++row) ASSERT_EQ(column[row], value_of(row)) << row;
}

}  // namespace
}  // namespace sidestream::trace
