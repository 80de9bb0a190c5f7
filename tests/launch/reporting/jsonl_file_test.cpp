#include "launch/reporting/jsonl_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

TEST(JsonlFileTest, append_oneLineEach) {
  const core::ScratchFolder scratch;
  const auto path = scratch / "log.jsonl";

  EXPECT_TRUE(read_json_lines(path).empty());
  append_json_line(path, {{"a", 1}});
  append_json_line(path, {{"a", 2}, {"text", "two\nlines"}});

  const auto objects = read_json_lines(path);
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[1]["a"], 2);
  EXPECT_EQ(objects[1]["text"], "two\nlines");
}

TEST(JsonlFileTest, append_afterATornLine) {
  const core::ScratchFolder scratch;
  const auto path = scratch / "log.jsonl";
  std::ofstream(path) << "{\"a\":1}\n{\"a\":";

  append_json_line(path, {{"a", 3}});

  const auto objects = read_json_lines(path);
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[1]["a"], 3);
}

TEST(JsonlFileTest, append_doesNotFollowALink) {
  const core::ScratchFolder scratch;
  std::ofstream(scratch / "elsewhere") << "precious\n";
  std::filesystem::create_symlink(scratch / "elsewhere", scratch / "log.jsonl");

  EXPECT_THROW(append_json_line(scratch / "log.jsonl", {{"a", 1}}), core::Error);
  EXPECT_EQ(std::filesystem::file_size(scratch / "elsewhere"), 9U);
}

}  // namespace
}  // namespace sidestream::launch
