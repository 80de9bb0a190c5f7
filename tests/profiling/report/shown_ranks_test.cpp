#include "profiling/report/shown_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace sidestream::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

using Figures = std::map<int, std::optional<double>>;

Figures unknown_of(int ranks) {
  Figures figures;
  for (int rank = 0; rank < ranks; ++rank) figures[rank] = std::nullopt;
  return figures;
}

ShownRanks<std::optional<double>> shown_of(const Figures& figures) {
  return shown_ranks(
      figures, [](const std::optional<double>& figure) { return figure; }, "wait least and most");
}

std::vector<int> ranks_of(const ShownRanks<std::optional<double>>& shown) {
  std::vector<int> ranks;
  for (const auto& row : shown.rows) ranks.push_back(row.first);
  return ranks;
}

TEST(ShownRanksTest, a_few_are_all_there_and_need_no_words) {
  const auto shown = shown_of({{0, 3.0}, {2, std::nullopt}, {7, 1.0}});

  EXPECT_THAT(ranks_of(shown), ElementsAre(0, 2, 7));
  EXPECT_EQ(shown.title, "");
}

TEST(ShownRanksTest, of_many_both_ends_are_shown_in_the_order_of_ranks) {
  Figures figures;
  for (int rank = 0; rank < 40; ++rank) figures[rank] = (7 * rank) % 40;

  const auto shown = shown_of(figures);

  ASSERT_EQ(shown.rows.size(), kShownRanks);
  for (const auto& [rank, figure] : shown.rows) EXPECT_TRUE(*figure < 8 || *figure >= 32) << rank;
  EXPECT_TRUE(std::ranges::is_sorted(ranks_of(shown)));
  EXPECT_EQ(shown.title, ", the 16 of 40 that wait least and most; --csv and --json have all");
}

TEST(ShownRanksTest, one_without_a_figure_is_at_no_end) {
  Figures figures = unknown_of(40);
  for (int rank = 10; rank < 30; ++rank) figures[rank] = rank;

  const auto shown = shown_of(figures);

  EXPECT_THAT(ranks_of(shown),
              ElementsAre(10, 11, 12, 13, 14, 15, 16, 17, 22, 23, 24, 25, 26, 27, 28, 29));
  EXPECT_EQ(shown.title,
            ", the 16 of 40 that wait least and most, as far as that is known; --csv and --json "
            "have all");
}

TEST(ShownRanksTest, the_few_that_have_a_figure_are_shown_before_others) {
  Figures figures = unknown_of(40);
  for (const int rank : {11, 20, 29}) figures[rank] = rank;

  const auto shown = shown_of(figures);

  EXPECT_EQ(shown.rows.size(), kShownRanks);
  EXPECT_THAT(ranks_of(shown), IsSupersetOf({11, 20, 29}));
}

TEST(ShownRanksTest, the_first_and_the_last_are_shown_where_none_has_a_figure) {
  const auto shown = shown_of(unknown_of(40));

  EXPECT_THAT(ranks_of(shown), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35, 36, 37, 38, 39));
  EXPECT_EQ(shown.title, ", the 16 of 40 that come first and last; --csv and --json have all");
}

}  // namespace
}  // namespace sidestream::report
