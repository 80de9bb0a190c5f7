#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "launch/reporting/line_plot.hpp"
#include "launch/reporting/text_table.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

int characters_in(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(TextTableTest, columns_are_aligned) {
  EXPECT_EQ(text_table({"name", "a"}, {{"x", "1"}, {"längster", "22"}}),
            "name       a\n"
            "------------\n"
            "x          1\n"
            "längster  22\n");
}

TEST(TextTableTest, comparison_table_ratio_says_how_much_better) {
  const std::string text =
      comparison_table("plain", "fused",
                       {{"tokens/s", 1000, 1840, Better::kHigher},
                        {"step time, ms", 250, 125, Better::kLower},
                        {"reader cost, ms", std::nullopt, 0.5, Better::kLower},
                        {"exposed communication, ms", 5, 0, Better::kLower},
                        {"too small to matter, ms", 0.04, 0.0008, Better::kLower, 2.5}});

  const std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_THAT(lines[0], ::testing::MatchesRegex(" +plain +fused +better by"));
  EXPECT_THAT(lines[2], ::testing::MatchesRegex("tokens/s +1000 +1840 +1.84x"));
  EXPECT_THAT(lines[3], ::testing::MatchesRegex("step time, ms +250 +125 +2.00x"));
  EXPECT_THAT(lines[4], ::testing::MatchesRegex("reader cost, ms +- +0.5 +-"));
  EXPECT_THAT(lines[5], ::testing::MatchesRegex("exposed communication, ms +5 +0 +-"));
  EXPECT_THAT(lines[6], ::testing::MatchesRegex("too small to matter, ms +0.04 +0.0008 +-"));
}

PlotSeries falling_line(double from, double to) {
  PlotSeries series{"loss", {}};
  for (int step = 0; step <= 100; ++step) {
    series.points.push_back({static_cast<double>(step), from + (to - from) * step / 100});
  }
  return series;
}

TEST(LinePlotTest, ascii_draws_a_falling_line_from_corner_to_corner) {
  const std::string plot =
      line_plot({falling_line(4, 0)}, {.width_columns = 40, .height_rows = 9, .utf8 = false});

  EXPECT_EQ(plot,
            "loss\n"
            "4 |***\n"
            "  |  ****\n"
            "  |      ****\n"
            "  |          ****\n"
            "2 |             *****\n"
            "  |                 ****\n"
            "  |                     ****\n"
            "  |                         ****\n"
            "0 |                            ***\n"
            "  +-------------------------------\n"
            "   0             50            100  step\n");
}

TEST(LinePlotTest, axis_has_two_numbers_whatever_the_extent) {
  for (const double low : {6.27, 6.29, 6.301, 0.0999}) {
    for (const int rows : {8, 16}) {
      const PlotSeries series{.name = "loss", .points = {{1, low + 0.041}, {2, low}}};
      const std::string plot =
          line_plot({series}, {.width_columns = 60, .height_rows = rows, .utf8 = false});
      int numbers = 0;
      for (const std::string& line : lines_of(plot))
        numbers += line.find(" |") != std::string::npos && line.front() != ' ' ? 1 : 0;
      EXPECT_GE(numbers, 2) << plot;
    }
  }
}

TEST(LinePlotTest, braille_fits_the_width_and_has_dots) {
  const std::string plot =
      line_plot({falling_line(11, 2)}, {.width_columns = 70, .height_rows = 10});

  for (const std::string& line : lines_of(plot)) EXPECT_LE(characters_in(line), 70) << line;
  EXPECT_THAT(plot, HasSubstr("\xE2\xA0"));  // U+2800 and up
  EXPECT_THAT(plot, HasSubstr("└"));
}

TEST(LinePlotTest, several_series_have_a_legend_and_different_marks) {
  PlotSeries other = falling_line(2, 8);
  other.name = "baseline";

  const std::string plot = line_plot({falling_line(8, 1), other}, {.utf8 = true, .color = false});

  EXPECT_THAT(plot, HasSubstr("* loss   o baseline"));
  EXPECT_EQ(plot.find("\xE2\xA0"), std::string::npos);
}

TEST(LinePlotTest, odd_input_gives_no_nonsense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();

  EXPECT_EQ(line_plot({}, {}), "");
  EXPECT_EQ(line_plot({{"loss", {{1, nan}}}}, {}), "");
  EXPECT_THAT(line_plot({{"loss", {{1, 5}}}}, {}), HasSubstr("5.0"));
  EXPECT_THAT(line_plot({{"loss", {{1, 0}, {2, nan}, {3, 0}}}}, {.width_columns = 1}),
              HasSubstr("0.0"));
}

}  // namespace
}  // namespace sidestream::launch
