#include "profiling/report/text_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/profiling/analysed.hpp"

namespace sidestream::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

enum class Collectives { kNone, kAtTheEnd };

// Steps that may end in a collective, in which rank 5 waits least and rank 7 most.
std::string steps_of(int rank, Collectives collectives) {
  const int own_us = rank == 5 ? 800 : rank == 7 ? 200 : 500;
  std::string events;
  for (int step = 10; step < 14; ++step) {
    const int begin = 1000 * step;
    events += (step == 10 ? "" : ",") + test::complete_event("user_annotation",
                                                             "ProfilerStep#" + std::to_string(step),
                                                             std::to_string(begin), "1000");
    if (collectives == Collectives::kNone) continue;
    events += "," + test::complete_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                                         std::to_string(begin + own_us),
                                         std::to_string(990 - own_us), R"("device":0,"stream":7)");
  }
  return events;
}

std::string report_of(int ranks, Collectives collectives = Collectives::kAtTheEnd) {
  const core::ScratchFolder scratch;
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < ranks; ++rank)
    files.push_back(test::write_text(scratch / ("rank-" + std::to_string(rank) + ".json"),
                                     test::trace_of(steps_of(rank, collectives), rank, ranks)));
  trace::TraceSet set = trace::load_traces(trace::find_traces(files), {.threads = 1});
  return text_report(analysis::analyse(set, 1), {}, {.width_columns = 160});
}

// The lines of the table of ranks, without title and head.
std::vector<std::string> rank_rows(const std::string& report) {
  std::vector<std::string> rows;
  for (std::size_t at = report.find("\nrank  steps"); at != std::string::npos;) {
    at = report.find('\n', at + 1);
    const std::string row = report.substr(at + 1, report.find('\n', at + 1) - at - 1);
    if (row.empty()) break;
    rows.push_back(row);
  }
  return rows;
}

TEST(TextReportTest, a_few_ranks_have_a_row_each) {
  const std::string report = report_of(8);
  EXPECT_EQ(rank_rows(report).size(), 8u) << report;
  EXPECT_THAT(report, Not(HasSubstr("that wait least")));
}

TEST(TextReportTest, of_many_ranks_those_that_wait_least_and_most_are_shown_and_the_rest_counted) {
  const std::string report = report_of(40);
  const auto rows = rank_rows(report);
  ASSERT_EQ(rows.size(), 16u) << report;
  EXPECT_THAT(report, HasSubstr("Ranks (of a step), the 16 of 40 that wait least and most; --csv"));
  for (const char* rank : {"5 ", "7 "})
    EXPECT_TRUE(std::ranges::any_of(rows, [&](const auto& row) { return row.starts_with(rank); }))
        << rank << report;
}

TEST(TextReportTest, of_many_ranks_whose_waits_nobody_knows_the_first_and_the_last_are_shown) {
  const std::string report = report_of(40, Collectives::kNone);
  EXPECT_EQ(rank_rows(report).size(), 16u) << report;
  EXPECT_THAT(report, HasSubstr("Ranks (of a step), the 16 of 40 that come first and last; --csv"));
}

}  // namespace
}  // namespace sidestream::report
