#include "launch/generation/generated_text.hpp"

#include <gtest/gtest.h>

namespace sidestream::launch {
namespace {

TEST(GeneratedTextTest, a_terminal_gets_no_control_characters) {
  GeneratedText text(Reader::kTerminal);

  EXPECT_EQ(text.next("\x1B[2J one\ttwo\r\n"), "?[2J one\ttwo\n");
  EXPECT_EQ(text.next("\xC2"), "") << "half of a control character, or of a letter";
  EXPECT_EQ(text.next("\x9B"), "?");
  EXPECT_EQ(text.next("a\xC2"), "a");
  EXPECT_EQ(text.next("\xA9"), "\xC2\xA9");
}

TEST(GeneratedTextTest, a_file_gets_every_byte) {
  GeneratedText text(Reader::kFile);

  EXPECT_EQ(text.next("\x1B[2J\r\n\xC2"), "\x1B[2J\r\n\xC2");
  EXPECT_EQ(text.next("\x9B"), "\x9B");
}

}  // namespace
}  // namespace sidestream::launch
