#include "core/base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sidestream::core {
namespace {

TEST(Utf8Test, findInvalid_tableOfForms) {
  EXPECT_EQ(find_invalid_utf8("plain ascii text, longer than eight"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("\u00e9\u20ac\U0010FFFF\uD7FF\uE000"), std::nullopt);
  for (const std::string bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\x91"}) {
    EXPECT_EQ(find_invalid_utf8("ab" + bad), 2u);
    EXPECT_EQ(find_invalid_utf8("ab" + bad + "cdefghijkl"), 2u);
  }
}

}  // namespace
}  // namespace sidestream::core
