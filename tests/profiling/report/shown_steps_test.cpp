#include "profiling/report/shown_steps.hpp"

#include <gtest/gtest.h>

#include "profiling/report/json_report.hpp"
#include "tests/profiling/analysed.hpp"

namespace sidestream::report {
namespace {

// Own times by step, of two ranks: step 5 is the longest, ranks differ most in step 7.
class ShownStepsTest : public testing::Test {
 protected:
  ShownStepsTest() {
    for (const int rank : {0, 1}) {
      analysis::RankView& view = all_.ranks.emplace_back(timeline_);
      view.steps.clear();
      for (int step = 0; step < 10; ++step) {
        analysis::StepRow& row = view.steps.emplace_back();
        row.rank = rank;
        row.step = step;
        row.budget.window_ns = step == 5 ? 300 : 200;
        row.budget.exposed_comm_ns = step == 7 && rank == 0 ? 150 : 20;
      }
    }
    all_.ranks[1].steps[3].tags = {"eval"};
  }

  std::vector<int> kept(const ShownSteps& shown) const {
    std::vector<int> steps;
    for (int step = 0; step < 10; ++step) {
      if (shown.contain(step)) steps.push_back(step);
    }
    return steps;
  }

  trace::RankTimeline timeline_;
  analysis::Analysis all_;
};

TEST_F(ShownStepsTest, all_of_them_while_there_is_room) {
  const ShownSteps shown(all_, 20);
  EXPECT_EQ(kept(shown).size(), 10u);
  EXPECT_EQ(shown.left_out_rows(), 0);
}

TEST_F(ShownStepsTest, else_the_first_the_tagged_the_longest_and_the_most_uneven) {
  const ShownSteps shown(all_, 9);
  EXPECT_EQ(kept(shown), (std::vector<int>{0, 3, 5, 7}));
  EXPECT_EQ(shown.left_out_rows(), 12);
}

TEST_F(ShownStepsTest, the_first_also_where_longer_ones_with_tags_take_all_room) {
  for (const std::size_t step : {2, 3, 4, 6, 8}) {
    for (analysis::RankView& view : all_.ranks) {
      view.steps[step].tags = {"eval"};
      view.steps[step].budget.window_ns = 400;
    }
  }

  EXPECT_EQ(kept(ShownSteps(all_, 9)), (std::vector<int>{0, 2, 3, 7}));
  EXPECT_EQ(kept(ShownSteps(all_, 1)), (std::vector<int>{0}));
}

TEST(ShownStepsReportTest, means_are_of_all_steps) {
  std::string events;
  for (int step = 10; step < 30; ++step) {
    const int begin = 1000 * step, length = step == 17 ? 900 : 500;
    events += (step == 10 ? "" : ",") +
              test::complete_event("user_annotation", "ProfilerStep#" + std::to_string(step),
                                   std::to_string(begin), std::to_string(length)) +
              "," + test::complete_event("kernel", "gemm", std::to_string(begin + 10), "100");
  }
  const test::Analysed one(events);

  const auto whole = json_summary(one.all, {});
  const auto short_one = json_summary(one.all, {}, ShownSteps(one.all, 4));

  EXPECT_EQ(whole.at("steps").size(), 20u);
  EXPECT_EQ(whole.at("steps_left_out"), 0);
  ASSERT_EQ(short_one.at("steps").size(), 4u);
  EXPECT_EQ(short_one.at("steps_left_out"), 16);
  EXPECT_EQ(short_one.at("heat_map").at("steps").size(), 4u);
  EXPECT_EQ(short_one.at("steps").at(0).at("start_ns"), 0);
  EXPECT_EQ(short_one.at("rank_means"), whole.at("rank_means"));
  EXPECT_EQ(whole.at("rank_means").at(0).at("steps"), 20);
  EXPECT_EQ(whole.at("rank_means").at(0).at("compute_ns"), 100'000);
  EXPECT_EQ(whole.at("rank_means").at(0).at("window_ns"), 520'000);
}

}  // namespace
}  // namespace sidestream::report
