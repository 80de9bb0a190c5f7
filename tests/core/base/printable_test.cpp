#include "core/base/printable.hpp"

#include <gtest/gtest.h>

namespace sidestream::core {
namespace {

// Clears the screen, in the form of one byte and in that of two.
constexpr const char* kName = "k\x1B[2J\n\xC2\x9B\x32J\x7F";

TEST(PrintableTest, control_characters_are_shown_as_such) {
  EXPECT_EQ(printable(kName), "k?[2J??2J?");
  EXPECT_EQ(printable("\xC3\xA4 \xC2\xB5s"), "\xC3\xA4 \xC2\xB5s");
  EXPECT_EQ(printable("cut \xC2"), "cut \xC2");
}

TEST(PrintableTest, lines_stay_lines) {
  EXPECT_EQ(printable_lines(kName), "k?[2J\n?2J?");
  EXPECT_EQ(printable_lines("a\tb\r\n"), "a\tb?\n");
}

}  // namespace
}  // namespace sidestream::core
