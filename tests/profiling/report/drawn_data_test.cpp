// What report.json has of the figures that a page draws.
#include <gtest/gtest.h>

#include "profiling/report/heat_map.hpp"
#include "profiling/report/json_details.hpp"
#include "profiling/report/memory_curve.hpp"
#include "tests/profiling/analysed.hpp"

namespace sidestream::report {
namespace {

using Json = nlohmann::ordered_json;

TEST(MemoryCurveTest, thinning_keeps_the_peak) {
  std::string events;
  for (int i = 0; i < 500; ++i)
    events += (i == 0 ? "" : ",") + test::memory_event(100 + i, 8, i == 333 ? 99'999 : 10 + i % 7);
  const test::Analysed one(events);

  const Json curve = memory_curves(one.all, 20).at(0).at("points");

  EXPECT_LE(curve.size(), 21u);
  std::int64_t peak = 0;
  for (const Json& point : curve) peak = std::max(peak, point.at(1).get<std::int64_t>());
  EXPECT_EQ(peak, 99'999);
}

analysis::RankView rank_of(const trace::RankTimeline& timeline, int rank,
                           const std::vector<std::pair<int, std::int64_t>>& own_ns_of_steps) {
  analysis::RankView view(timeline);
  view.steps.clear();
  for (const auto& [step, own_ns] : own_ns_of_steps) {
    analysis::StepRow& row = view.steps.emplace_back();
    row.rank = rank;
    row.step = step;
    row.budget.window_ns = own_ns + 30;
    row.budget.exposed_comm_ns = 20;
    row.idle.comm_ns = 10;
  }
  return view;
}

TEST(HeatMapTest, a_row_a_rank_against_the_median_of_the_step) {
  const trace::RankTimeline timeline;
  analysis::Analysis all;
  all.ranks.push_back(rank_of(timeline, 0, {{3, 100}, {4, 100}}));
  all.ranks.push_back(rank_of(timeline, 2, {{4, 300}}));

  const Json map = heat_map(all);

  EXPECT_EQ(map.at("steps"), (Json{3, 4}));
  EXPECT_EQ(map.at("ranks"), (Json{0, 2}));
  EXPECT_EQ(map.at("own_ns"), (Json{{100, 100}, {nullptr, 300}}));
  EXPECT_EQ(map.at("over_median"), (Json{{0.0, -0.5}, {nullptr, 0.5}}));
}

// 1200 events of 1 us, one every 2 us: closed gaps make bars longer, and never all of them one.
TEST(TimelineTest, a_lane_with_many_equal_gaps_keeps_as_many_as_a_page_draws) {
  std::string events = test::complete_event("user_annotation", "ProfilerStep#2", "0", "2400");
  for (int i = 0; i < 1200; ++i)
    events += "," + test::complete_event("kernel", "k", std::to_string(2 * i), "1",
                                         R"("device":0,"stream":7)");
  const test::Analysed one(events);

  const Json lanes = lanes_json(one.all).at(0).at("lanes");
  const Json& drawn = lanes.at(0).at("intervals_ns");

  EXPECT_EQ(drawn.size(), 500u);
  EXPECT_EQ(drawn.at(0).at(0), 0);
  EXPECT_EQ(drawn.at(499).at(1), 2'399'000);
}

}  // namespace
}  // namespace sidestream::report
