#include "comm/build_check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sidestream::comm {
namespace {

std::string difference_of(const std::vector<std::string>& build_ids) {
  const std::vector<std::string> hosts = {"node1", "node1", "node2"};
  return build_difference(build_ids, hosts);
}

TEST(BuildCheckTest, difference_noneOfOneBuild) {
  EXPECT_EQ(difference_of({"ab12", "ab12", "ab12"}), "");
}

TEST(BuildCheckTest, difference_namesBuildsAndRanks) {
  EXPECT_EQ(
      difference_of({"ab12", "cd34", "ab12"}),
      "the ranks run different builds of the program: ab12 (rank 0 on node1, rank 2 on node2); "
      "cd34 (rank 1 on node1). Copy one build to every host, or put it on a file system that "
      "all see");
}

TEST(BuildCheckTest, difference_unknownIsNone) {
  EXPECT_EQ(difference_of({"ab12", "", "cd34"}), "");
}

}  // namespace
}  // namespace sidestream::comm
