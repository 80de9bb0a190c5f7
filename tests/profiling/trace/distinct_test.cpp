#include "profiling/trace/distinct.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sidestream::trace {
namespace {

struct Shape {
  std::array<std::uint32_t, 3> grid = {};
  float share = 0;
};

TEST(DistinctTest, equalValues_areKeptOnce) {
  Distinct<Shape> shapes;
  const std::uint32_t first = shapes.intern({{1, 2, 3}, 0.5F});
  const std::uint32_t second = shapes.intern({{1, 2, 4}, 0.5F});
  const std::uint32_t third = shapes.intern({{1, 2, 3}, 0.25F});

  EXPECT_EQ(shapes.intern({{1, 2, 4}, 0.5F}), second);
  EXPECT_EQ(shapes.intern({{1, 2, 3}, 0.5F}), first);
  EXPECT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[third].share, 0.25F);
  EXPECT_EQ(shapes[second].grid[2], 4u);
}

TEST(DistinctTest, manyValues_keepTheirNumbers) {
  Distinct<std::uint64_t> values;
  constexpr std::uint64_t kMany = 20'000;  // several blocks of the column
  for (std::uint64_t value = 0; value < kMany; ++value) ASSERT_EQ(values.intern(value), value);
  for (std::uint64_t value = kMany; value-- > 0;) ASSERT_EQ(values.intern(value), value);
  EXPECT_EQ(values.size(), kMany);
}

}  // namespace
}  // namespace sidestream::trace
