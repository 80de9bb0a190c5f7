#include "launch/recording/raw_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/base/write_error.hpp"
#include "tests/core/base/full_disk.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;

std::string why_it_is_not_there(const RawFile& raw) {
  try {
    raw.require();
  } catch (const core::WriteError& error) {
    return error.what();
  }
  return "";
}

TEST(RawFileTest, a_file_that_is_there_is_required_without_a_word) {
  const core::ScratchFolder scratch;
  std::ofstream(scratch / "raw.json") << "{}";

  EXPECT_EQ(why_it_is_not_there(RawFile(scratch / "raw.json")), "");
}

// Kineto writes up to the limit of files, and leaves that under another name.
TEST(RawFileTest, one_beyond_the_limit_of_files_says_so_and_leaves_nothing) {
  const core::ScratchFolder scratch;
  {
    constexpr std::size_t kLimitBytes = 20000;
    std::ofstream(scratch / "raw.json.tmp") << std::string(kLimitBytes, ' ');
    const core::FullDisk full(kLimitBytes);
    const RawFile raw(scratch / "raw.json");

    EXPECT_THAT(why_it_is_not_there(raw), HasSubstr("raw.json: File too large"));
  }
  EXPECT_EQ(scratch.names(), std::vector<std::string>{});
}

TEST(RawFileTest, one_in_a_folder_that_is_gone_says_so) {
  const core::ScratchFolder scratch;

  EXPECT_THAT(why_it_is_not_there(RawFile(scratch / "gone" / "raw.json")),
              HasSubstr("raw.json: No such file or directory"));
}

}  // namespace
}  // namespace sidestream::launch
