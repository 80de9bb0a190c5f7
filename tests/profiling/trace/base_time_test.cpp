#include "profiling/trace/base_time.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::trace {
namespace {

RankInfo read(std::string_view text) {
  RankInfo info;
  info.base_ns = 7;
  info.senseless_base = "what an earlier one said";
  read_base_time(text, info);
  return info;
}

TEST(BaseTimeTest, read_base_time_takes_whole_nanoseconds_in_quotes_or_not) {
  for (const char* text :
       {"1711964646000000000", "\"1711964646000000000\"", "1711964646000000000.0"}) {
    const RankInfo info = read(text);
    EXPECT_EQ(info.base_ns, 1711964646000000000) << text;
    EXPECT_FALSE(base_time_warning(info)) << text;
  }
  EXPECT_EQ(read("-5").base_ns, -5) << "merge writes such a one where a trace begins before its 0";
}

TEST(BaseTimeTest, read_base_time_of_a_file_that_does_not_say_is_0) {
  for (const char* text : {"", "null", "\"\""}) {
    const RankInfo info = read(text);
    EXPECT_EQ(info.base_ns, 0) << text;
    EXPECT_FALSE(base_time_warning(info)) << text;
  }
}

TEST(BaseTimeTest, read_base_time_that_cannot_be_is_0_and_said) {
  for (const char* text : {"1.711964646e+18", "1.711964646E18", "9223372036854775807",
                           "-9223372036854775808", "99999999999999999999", "noon", "{}", "12x"}) {
    const RankInfo info = read(text);
    EXPECT_EQ(info.base_ns, 0) << text;
    ASSERT_TRUE(base_time_warning(info)) << text;
    EXPECT_THAT(*base_time_warning(info),
                ::testing::AllOf(::testing::StartsWith("baseTimeNanoseconds, "),
                                 ::testing::HasSubstr(std::string("found '") + text + "'")));
  }
  EXPECT_LT(base_time_warning(read(std::string(1 << 20, 'x')))->size(), 300u);
}

}  // namespace
}  // namespace sidestream::trace
