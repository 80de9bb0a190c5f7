#include "core/base/config_line.hpp"

#include <gtest/gtest.h>

namespace sidestream::core {
namespace {

TEST(ConfigLineTest, a_comment_starts_after_a_blank_and_not_in_quotes) {
  struct Case {
    const char* line;
    const char* value;
  };
  for (const Case& one : {Case{"a = w#1", "w#1"}, Case{"a = w #1", "w"}, Case{"a=\t1 # b = 2", "1"},
                          Case{"a = \"w #1 \"  # why", "w #1 "}, Case{"a = \"\"", ""},
                          Case{"a =", ""}, Case{"a = b=c", "b=c"}, Case{"a = 1\r", "1"}}) {
    const ConfigLine read = read_config_line(one.line);

    EXPECT_EQ(read.key, "a") << one.line;
    EXPECT_EQ(read.value, one.value) << one.line;
  }
}

TEST(ConfigLineTest, what_is_no_assignment_has_no_key) {
  for (const char* line : {"", "  # a = 1", "#a = 1", "\t\r"})
    EXPECT_EQ(read_config_line(line).text, "") << line;
  for (const char* line : {"a", "a # b = 1", "= 1"}) {
    EXPECT_EQ(read_config_line(line).key, "") << line;
    EXPECT_NE(read_config_line(line).text, "") << line;
  }
}

TEST(ConfigLineTest, a_quote_has_to_be_closed_at_the_end) {
  for (const char* line : {"a = \"w", "a = \"w\" x", "a = \"w\"x # y"}) {
    EXPECT_EQ(read_config_line(line).key, "a") << line;
    EXPECT_FALSE(read_config_line(line).value) << line;
  }
}

}  // namespace
}  // namespace sidestream::core
