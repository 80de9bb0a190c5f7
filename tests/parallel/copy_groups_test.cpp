#include "parallel/copy_groups.hpp"

#include <gtest/gtest.h>

namespace sidestream::parallel {
namespace {

std::vector<std::vector<std::size_t>> grouped(const std::vector<std::size_t>& bytes,
                                              std::size_t most_bytes) {
  std::vector<std::vector<std::size_t>> groups;
  for (const CopyGroup& group : copy_groups(bytes, most_bytes)) {
    groups.emplace_back();
    for (std::size_t i = group.begin; i < group.end; ++i) groups.back().push_back(i);
  }
  return groups;
}

using Groups = std::vector<std::vector<std::size_t>>;

TEST(CopyGroupsTest, no_group_takes_more_than_may_be_on_the_host) {
  EXPECT_EQ(grouped({4, 4, 2, 8, 3}, 10), (Groups{{0, 1, 2}, {3}, {4}}));
  EXPECT_EQ(grouped({10, 10}, 10), (Groups{{0}, {1}}));
}

TEST(CopyGroupsTest, a_tensor_that_takes_more_is_alone) {
  EXPECT_EQ(grouped({1, 50, 1}, 10), (Groups{{0}, {1}, {2}}));
  EXPECT_EQ(grouped({50}, 10), (Groups{{0}}));
}

TEST(CopyGroupsTest, what_lies_on_the_host_is_one_group) {
  EXPECT_EQ(grouped({0, 0, 0}, 10), (Groups{{0, 1, 2}}));
  EXPECT_EQ(grouped({}, 10), Groups{});
}

}  // namespace
}  // namespace sidestream::parallel
