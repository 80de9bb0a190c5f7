#include "core/base/error.hpp"

#include <gtest/gtest.h>

namespace sidestream::core {
namespace {

TEST(ErrorTest, every_class_has_its_documented_exit_code) {
  EXPECT_EQ(static_cast<int>(Error("x").code()), 1);
  EXPECT_EQ(static_cast<int>(ConfigError("x").code()), 2);
  EXPECT_EQ(static_cast<int>(DataError("x").code()), 3);
  EXPECT_EQ(static_cast<int>(CheckpointError("x").code()), 4);
  EXPECT_EQ(static_cast<int>(NumericsError("x").code()), 5);
  EXPECT_EQ(static_cast<int>(CollectiveError("x").code()), 6);
  EXPECT_EQ(static_cast<int>(PeerError("x").code()), 7);
  EXPECT_EQ(static_cast<int>(MemoryError("x").code()), 8);
  EXPECT_EQ(static_cast<int>(ExitCode::kPreempted), 75);
}

TEST(ErrorTest, text_of_file_fault_names_file_byte_expected_and_found) {
  const FileFault at_byte{.file = "a.bin", .offset_bytes = 12, .expected = "magic 1", .found = "2"};
  const FileFault whole_file{
      .file = "a.bin", .offset_bytes = {}, .expected = "magic 1", .found = "2"};

  EXPECT_STREQ(DataError(at_byte).what(), "a.bin, byte 12: expected magic 1, found 2");
  EXPECT_STREQ(CheckpointError(whole_file).what(), "a.bin: expected magic 1, found 2");
}

}  // namespace
}  // namespace sidestream::core
