#include "launch/reporting/jsonl_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/core/base/nested_json.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

TEST(JsonlFileTest, append_oneLineEach) {
  const core::ScratchFolder scratch;
  const auto path = scratch / "log.jsonl";

  EXPECT_TRUE(read_json_lines(path).empty());
  AppendedFile file(path, AppendedFile::Content::kLines);
  append_json_line(file, {{"a", 1}});
  append_json_line(file, {{"a", 2}, {"text", "two\nlines"}});

  const auto objects = read_json_lines(path);
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[1].object["a"], 2);
  EXPECT_EQ(objects[1].offset_bytes, std::string("{\"a\":1}\n").size());
  EXPECT_EQ(objects[1].object["text"], "two\nlines");
}

TEST(JsonlFileTest, append_afterATornLine) {
  const core::ScratchFolder scratch;
  const auto path = scratch / "log.jsonl";
  std::ofstream(path) << "{\"a\":1}\n{\"a\":";

  AppendedFile file(path, AppendedFile::Content::kLines);
  append_json_line(file, {{"a", 3}});

  const auto objects = read_json_lines(path);
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_TRUE(objects[1].object.is_null());
  EXPECT_EQ(objects[2].object["a"], 3);
}

TEST(JsonlFileTest, read_aDeepLineIsNone) {
  const core::ScratchFolder scratch;
  std::ofstream(scratch / "log.jsonl") << "{\"a\":" << core::nested_json() << "}\n{\"a\":3}\n";

  const auto objects = read_json_lines(scratch / "log.jsonl");

  ASSERT_EQ(objects.size(), 2U);
  EXPECT_TRUE(objects[0].object.is_null());
  EXPECT_EQ(objects[1].object["a"], 3);
}

}  // namespace
}  // namespace sidestream::launch
