#include "core/base/shell_words.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace sidestream::core {
namespace {

const std::vector<std::string> kWords = {"a",  "",     "two words", "it's", "'",
                                         "\\", "$(x)", "a\nb",      ";"};

TEST(ShellWordsTest, come_back_as_they_were) {
  EXPECT_EQ(words_of_shell(shell_words(kWords)), kWords);
}

TEST(ShellWordsTest, a_shell_takes_them_as_they_were) {
  std::string expected, found;
  for (const std::string& word : kWords) expected += word + "|";
  FILE* output = popen(("printf '%s|' " + shell_words(kWords)).c_str(), "r");
  ASSERT_NE(output, nullptr);
  for (int letter; (letter = std::fgetc(output)) != EOF;) found += static_cast<char>(letter);

  EXPECT_EQ(pclose(output), 0);
  EXPECT_EQ(found, expected);
}

TEST(ShellWordsTest, blanks_between_words_and_an_open_quote) {
  EXPECT_EQ(words_of_shell(" a \t b\n"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(words_of_shell("a 'b c"), (std::vector<std::string>{"a", "b c"}));
  EXPECT_TRUE(words_of_shell(" ").empty());
}

}  // namespace
}  // namespace sidestream::core
