// Names out of a trace do nothing to the terminal that shows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/report/table.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::report {
namespace {

// Clears the screen, in the form of one byte and in that of two.
constexpr const char* kName = "k\x1B[2J\n\xC2\x9B\x32J\x7F";

TEST(TerminalTextTest, a_row_of_a_table_is_one_line) {
  const Table table{.title = "Longest", .header = {"name", "calls"}, .rows = {{kName, "1"}}};

  EXPECT_EQ(text_of(table, {.width_columns = 80}),
            "Longest\nname        calls\nk?[2J??2J?      1\n");
  EXPECT_THAT(csv_of(table), ::testing::HasSubstr(kName)) << "a file has names as they are";
}

TEST(TerminalTextTest, a_long_title_is_wrapped) {
  const Table table{.title = "A title that is too long", .header = {}, .rows = {}};
  EXPECT_EQ(text_of(table, {.width_columns = 20}), "A title that is too\n  long\n");
}

TEST(TerminalTextTest, a_sentence_has_the_breaks_of_its_width_alone) {
  EXPECT_EQ(wrapped("why: a\nb is slow", 80, 2), "why: a?b is slow\n");
}

TEST(AmountTextTest, numbers_have_no_exponents) {
  EXPECT_EQ(duration_text(12'800e9), "12800 s");
  EXPECT_EQ(duration_text(1.2345e6), "1.234 ms");
  EXPECT_EQ(rate_text(1e16, "FLOP"), "10 PFLOP");
  EXPECT_EQ(rate_text(2e19, "FLOP/s"), "20000 PFLOP/s");
  EXPECT_EQ(bytes_text(5e16), "50000 TB");
  EXPECT_EQ(number_text(9999.4), "9999");
  EXPECT_EQ(number_text(12345.6), "12346");
}

}  // namespace
}  // namespace sidestream::report
