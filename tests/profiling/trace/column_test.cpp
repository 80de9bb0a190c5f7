#include "profiling/trace/column.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace sidestream::trace {
namespace {

TEST(ColumnTest, rows_keep_their_values_while_blocks_grow) {
  Column<std::uint64_t> column;
  EXPECT_TRUE(column.empty());
  constexpr std::uint64_t kRows = 20'000;  // several blocks
  for (std::uint64_t row = 0; row < kRows; ++row) {
    column.push_back(row * 3);
    ASSERT_EQ(column[row / 2], row / 2 * 3) << row;
  }
  ASSERT_EQ(column.size(), kRows);
  for (std::uint64_t row = 0; row < kRows; ++row) ASSERT_EQ(column[row], row * 3) << row;
}

// The block that it lies in may be copied meanwhile.
TEST(ColumnTest, a_row_may_be_added_once_more) {
  using Wide = std::array<std::uint64_t, 8>;
  Column<Wide> column;
  column.push_back({1, 2, 3, 4, 5, 6, 7, 8});
  for (std::size_t row = 0; row < 5000; ++row) column.push_back(column[row]);
  for (std::size_t row = 0; row < column.size(); ++row) ASSERT_EQ(column[row], column[0]) << row;
}

}  // namespace
}  // namespace sidestream::trace
