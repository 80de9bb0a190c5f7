#include "profiling/record/numa_nodes.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::record {
namespace {

class NumaNodesTest : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::string& processors) {
    std::filesystem::create_directories(scratch_ / name);
    std::ofstream(scratch_ / name / "cpulist") << processors << "\n";
  }
  core::ScratchFolder scratch_;
};

TEST_F(NumaNodesTest, nodes_that_a_process_reaches_are_counted) {
  add("node0", "0-3,8-11");
  add("node1", "4-7,12");
  add("node2", "");  // memory only
  add("possible", "0-1");

  const auto bound = numa_nodes({8, 9}, scratch_.path());
  const auto across = numa_nodes({3, 4}, scratch_.path());

  ASSERT_TRUE(bound && across);
  EXPECT_EQ(bound->machine, 2);
  EXPECT_EQ(bound->process, 1);
  EXPECT_EQ(across->process, 2);
  EXPECT_FALSE(across->farthest);
}

TEST_F(NumaNodesTest, the_farthest_of_the_nodes_of_a_process_is_known_where_the_firmware_says_it) {
  for (const char* node : {"0", "1", "2"}) add(std::string("node") + node, node);
  std::ofstream(scratch_ / "node0" / "distance") << "10 12 21\n";
  std::ofstream(scratch_ / "node1" / "distance") << "12 10 32\n";

  EXPECT_EQ(numa_nodes({0}, scratch_.path())->farthest, 21);
  EXPECT_EQ(numa_nodes({0, 1, 2}, scratch_.path())->farthest, 32);
  EXPECT_FALSE(numa_nodes({2}, scratch_.path())->farthest);
}

TEST_F(NumaNodesTest, a_system_that_does_not_say_is_not_guessed) {
  EXPECT_FALSE(numa_nodes({0}, scratch_ / "missing"));
  add("node0", "nonsense");
  EXPECT_FALSE(numa_nodes({0}, scratch_.path()));
}

TEST(ProcessorListTest, what_is_no_list_is_empty) {
  EXPECT_EQ(processor_list("0,2-4"), (std::vector<int>{0, 2, 3, 4}));
  for (const char* text : {"", "x", "3-1", "1-", "99999999999", "-1", "1;2"})
    EXPECT_TRUE(processor_list(text).empty()) << text;
}

}  // namespace
}  // namespace sidestream::record
