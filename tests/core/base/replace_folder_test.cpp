#include "core/base/replace_folder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

namespace fs = std::filesystem;

class ReplaceFolderTest : public ::testing::Test {
 protected:
  ReplaceFolderTest() {
    make("fresh");
    make("target");
  }
  void make(const std::string& name) const {
    fs::create_directory(scratch_ / name);
    write_file_atomically(scratch_ / name / "text", name);
  }
  std::string in_target() const { return read_file(scratch_ / "target" / "text"); }
  void replace() const {
    replace_in_two_steps(scratch_ / "fresh", scratch_ / "target", scratch_ / "aside");
  }
  ScratchFolder scratch_;
};

TEST_F(ReplaceFolderTest, the_fresh_one_has_the_name_and_the_old_one_is_gone) {
  replace();

  EXPECT_EQ(in_target(), "fresh");
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{"target"});
}

TEST_F(ReplaceFolderTest, a_target_that_has_gone_is_nothing_to_replace) {
  fs::remove_all(scratch_ / "target");

  replace();

  EXPECT_EQ(in_target(), "fresh");
}

TEST_F(ReplaceFolderTest, when_the_fresh_one_cannot_be_moved_the_old_one_is_back) {
  fs::remove_all(scratch_ / "fresh");
  try {
    replace();
    FAIL() << "nothing was there to replace it with";
  } catch (const fs::filesystem_error& error) {
    EXPECT_EQ(error.path1(), scratch_ / "fresh");
  }
  EXPECT_EQ(in_target(), "target");
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{"target"});
}

TEST_F(ReplaceFolderTest, what_an_earlier_attempt_left_aside_is_no_obstacle) {
  make("aside");

  replace();

  EXPECT_EQ(in_target(), "fresh");
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{"target"});
}

}  // namespace
}  // namespace sidestream::core
