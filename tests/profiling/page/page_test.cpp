#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/page/document.hpp"
#include "profiling/page/html.hpp"
#include "profiling/page/sample_lanes.hpp"
#include "profiling/page/timeline_data.hpp"
#include "profiling/report/json_report.hpp"
#include "profiling/report/summary.hpp"
#include "tests/profiling/analysed.hpp"

namespace sidestream::page {
namespace {

using test::Analysed;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

const std::string kStep = test::complete_event("user_annotation", "ProfilerStep#4", "100", "50") +
                          "," + test::complete_event("kernel", "gemm<float>", "110", "20") + "," +
                          test::complete_event("kernel", "ncclDevKernel_AllReduce", "125", "10") +
                          "," + test::complete_event("gpu_memcpy", "Memcpy HtoD", "140", "2") +
                          "," + test::complete_event("cpu_op", "aten::mm", "105", "3");

Json lane_of(const Json& rank, const std::string& kind) {
  for (const Json& lane : rank.at("lanes")) {
    if (lane.at("kind") == kind) return lane.at("events");
  }
  return nullptr;
}

TEST(TimelineDataTest, events_lie_in_lanes_and_count_from_the_first_step) {
  const Analysed one(kStep);
  const Json data = timeline_data(one.all);

  const Json& rank = data.at("ranks").at(0);
  const Json compute = lane_of(rank, "compute");
  ASSERT_EQ(compute.size(), 3u);
  EXPECT_EQ(compute.at(0), 10000);
  EXPECT_EQ(compute.at(1), 20000);
  EXPECT_EQ(data.at("names").at(compute.at(2).get<std::size_t>()), "gemm<float>");
  EXPECT_EQ(lane_of(rank, "communication").at(0), 25000);
  EXPECT_EQ(lane_of(rank, "copies").at(1), 2000);
  EXPECT_EQ(lane_of(rank, "operators").at(0), 5000);
  EXPECT_EQ(rank.at("windows").at(0), (Json{4, 0, 50000}));
  EXPECT_EQ(data.at("start_ns"), 5000);  // the operator at 105 us is the first that is drawn
  EXPECT_EQ(data.at("length_ns"), 37000);
}

// A memory table and the advice say when: there it is in the timeline.
TEST(TimelineDataTest, times_are_those_of_the_tables) {
  const Analysed one(test::complete_event("kernel", "early", "90", "15") + "," + kStep);
  const report::CommonTime time(one.all);

  const Json data = timeline_data(one.all);

  EXPECT_EQ(data.at("start_ns"), -10000);
  const Json compute = lane_of(data.at("ranks").at(0), "compute");
  const trace::RankTimeline& timeline = *one.all.ranks.at(0).timeline;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.name(row) != "gemm<float>") continue;
    EXPECT_EQ(compute.at(3), time(timeline, timeline.start_ns(row)));
  }
}

TEST(TimelineDataTest, the_shortest_are_left_out_and_counted) {
  const Analysed one(kStep);
  const Json data = timeline_data(one.all, 2);

  EXPECT_EQ(data.at("left_out"), 2);
  EXPECT_EQ(data.at("shortest_ns"), 3001);
  EXPECT_EQ(lane_of(data.at("ranks").at(0), "compute").size(), 3u);
  EXPECT_TRUE(lane_of(data.at("ranks").at(0), "copies").is_null());
}

TEST(TimelineDataTest, windows_of_a_rank_are_one_rank) {
  const core::ScratchFolder scratch;
  std::vector<std::filesystem::path> files;
  for (const char* at : {"100", "900"}) {
    const std::string step = test::complete_event("user_annotation", "ProfilerStep#4", at, "50") +
                             "," + test::complete_event("kernel", "gemm", at, "20");
    files.push_back(test::write_text(scratch / at / "rank-0.json", test::trace_of(step)));
  }
  trace::TraceSet set = trace::load_traces(trace::find_traces(files), {.threads = 1});
  const Json data = timeline_data(analysis::analyse(set, 1));

  ASSERT_EQ(data.at("ranks").size(), 1u);
  const Json& rank = data.at("ranks").at(0);
  EXPECT_EQ(rank.at("windows"), (Json{{4, 0, 50000}, {4, 800000, 850000}}));
  EXPECT_EQ(lane_of(rank, "compute").size(), 6u);
}

TEST(SampleLanesTest, those_inside_the_steps_are_lanes_of_their_rank) {
  std::string samples;
  for (const char* at : {"90", "110", "120", "170"})
    samples += "," + test::counter_event("machine cpu [%]", at, R"("busy":)" + std::string(at)) +
               "," + test::counter_event("disk busy [%]", at, R"("a":1,"b":2)");
  const Analysed one(kStep + samples);

  const Json lanes = timeline_data(one.all).at("ranks").at(0).at("samples");

  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes.at(0).at("name"), "machine cpu, %");
  EXPECT_EQ(lanes.at(0).at("points"), (Json{10000, 110.0, 20000, 120.0}));
  EXPECT_EQ(lanes.at(0).at("full"), 120.0);
  EXPECT_EQ(lanes.at(1).at("name"), "disk b, %");
}

TEST(SampleLanesTest, what_is_between_two_windows_of_a_rank_is_not_known) {
  const core::ScratchFolder scratch;
  std::vector<std::filesystem::path> files;
  for (const char* at : {"100", "900"}) {
    const std::string step = test::complete_event("user_annotation", "ProfilerStep#4", at, "50") +
                             "," + test::complete_event("kernel", "gemm", at, "20") + "," +
                             test::counter_event("machine cpu [%]", at, R"("busy":50)");
    files.push_back(test::write_text(scratch / at / "rank-0.json", test::trace_of(step)));
  }
  trace::TraceSet set = trace::load_traces(trace::find_traces(files), {.threads = 1});

  const Json data = timeline_data(analysis::analyse(set, 1));

  const Json lane = data.at("ranks").at(0).at("samples").at(0);
  EXPECT_EQ(lane.at("points"), (Json{0, 50.0, 800000, 50.0}));
  EXPECT_EQ(lane.at("starts"), (Json{0, 1}));
}

TEST(SampleLanesTest, thinning_keeps_the_peak) {
  trace::RankTimeline timeline;
  const trace::NameId counter = timeline.names.intern("machine cpu [%]");
  const trace::NameId series = timeline.names.intern("busy");
  for (int i = 0; i < 500; ++i) timeline.add_counter({counter, series, i, i == 333 ? 99.0 : 10.0});
  const auto lanes = sample_lanes(
      timeline, 0, 500, [](std::int64_t time) { return time; }, 20);

  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_LE(lanes[0].points.size(), 20u);
  double peak = 0;
  for (const SamplePoint& point : lanes[0].points) peak = std::max(peak, point.value);
  EXPECT_DOUBLE_EQ(peak, 99);
}

TEST(HtmlTest, page_is_whole_and_text_of_traces_cannot_end_a_script) {
  DocumentParts parts{.title = "a <b> & \"c\""};
  parts.verification = {{"command", "</script><script>alert(1)</script>"}};
  const std::string page = html_page(document_of(std::move(parts)));

  EXPECT_THAT(page, HasSubstr("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>"));
  EXPECT_THAT(page, Not(HasSubstr("src=\"http")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_LT(page.size(), 8u << 20);
}

TEST(DocumentTest, run_has_the_report_tables_and_timeline) {
  const Analysed one(kStep);
  const Json run = run_document("a", one.all, analysis::look_closer(one.all), {{"schema", 1}});

  EXPECT_EQ(run.at("report").at("schema"), 1);
  EXPECT_FALSE(run.at("tables").empty());
  EXPECT_EQ(run.at("timeline").at("ranks").size(), 1u);
}

TEST(DocumentTest, the_timeline_has_the_steps_that_are_shown) {
  std::string events = kStep;
  for (const char* step : {"5", "6"})
    events += "," + test::complete_event("user_annotation", "ProfilerStep#" + std::string(step),
                                         std::string(step) + "00", step);
  const Analysed one(events);

  const Json run = run_document("a", one.all, analysis::look_closer(one.all), {},
                                report::ShownSteps(one.all, 1));

  EXPECT_EQ(run.at("timeline").at("ranks").at(0).at("windows"), Json::array({Json{4, 0, 50000}}));
}

// Scripts read the figures that people look at.
TEST(DocumentTest, curves_and_heat_map_of_the_page_are_those_of_report_json) {
  std::string events = kStep;
  for (int i = 0; i < 1500; ++i) events += "," + test::memory_event(100 + i, 8, 10 + i % 7);
  const Analysed one(events);
  const analysis::Details details = analysis::look_closer(one.all);

  const Json report = report::json_report(one.all, details, {});
  const Json run = run_document("a", one.all, details, report::json_summary(one.all, {}));

  EXPECT_EQ(run.at("memory_curves").at(0).at("points").size(), 1500u);
  EXPECT_EQ(run.at("memory_curves"), report.at("memory_curves"));
  EXPECT_EQ(run.at("report").at("heat_map").at("steps"), Json{4});
  EXPECT_EQ(run.at("report").at("heat_map"), report.at("heat_map"));
}

}  // namespace
}  // namespace sidestream::page
