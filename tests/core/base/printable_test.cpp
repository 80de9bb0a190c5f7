#include "core/base/printable.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/base/standard_output.hpp"
#include "core/base/warning.hpp"

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

TEST(PrintableTest, warnings_and_remarks_are) {
  ::testing::internal::CaptureStderr();
  print_warning(kName);
  print_remark(std::string(kName) + "\n");

  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sidestream: warning: k?[2J\n?2J?\nk?[2J\n?2J?\n");
}

}  // namespace
}  // namespace sidestream::core
