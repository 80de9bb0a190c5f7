#include "profiling/report/run_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunMetricsTest : public ::testing::Test {
 protected:
  RunMetrics read(const std::string& lines, const std::string& record) const {
    test::write_text(scratch_ / "metrics.jsonl", lines);
    test::write_text(scratch_ / "run.json", record);
    return read_run_metrics({scratch_.path()});
  }
  core::ScratchFolder scratch_;
};

constexpr const char* kRecord = R"({"ettr": 0.5,
  "ettr_account": {"wall_s": 100, "productive_s": 50, "idle_s": 50},
  "verdict": {"steps": 40, "compute": 0.75, "comm": 0.25, "io": 0, "cpu": 0,
              "straggler": {"ranks": [1, 3], "cost_ns_per_step": 5e6}}})";

TEST_F(RunMetricsTest, medians_of_lines_and_shares_of_the_record) {
  const RunMetrics run = read(R"({"step":1,"tokens_per_s":10,"mfu":0.25,"mfu_palm":null}
{"step":2,"tokens_per_s":30,"mfu":0.75}
{"step":3,"tokens_per_s":20,"mfu":0.5}
{"step":4,"tok)",
                              kRecord);

  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_THAT(run.refused_figures, IsEmpty());
  EXPECT_EQ(run.tokens_per_s, 20);
  EXPECT_EQ(run.mfu, 0.5);
  EXPECT_EQ(run.mfu_palm, std::nullopt);
  EXPECT_EQ(run.mfu_of_steps.at(2), 0.75);
  EXPECT_EQ(run.ettr, 0.5);
  EXPECT_EQ(run.wall_s, 100);
  EXPECT_EQ(run.verdict->steps, 40);
  EXPECT_EQ(run.verdict->compute, 0.75);
  EXPECT_THAT(run.verdict->late_ranks, ElementsAre(1, 3));
  EXPECT_EQ(run.verdict->late_cost_ns, 5e6);
}

TEST_F(RunMetricsTest, figures_that_cannot_be_are_left_out_and_told_once_each) {
  const RunMetrics run = read(R"({"step":1,"tokens_per_s":10,"mfu":0.25}
{"step":2,"tokens_per_s":-5,"mfu":-1}
{"step":3,"tokens_per_s":-6,"mfu":"0.5"}
)",
                              kRecord);

  EXPECT_EQ(run.tokens_per_s, 10);
  EXPECT_EQ(run.mfu, 0.25);
  EXPECT_EQ(run.mfu_of_steps.size(), 1u);
  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_THAT(run.refused_figures,
              ElementsAre(HasSubstr("metrics.jsonl: line 2: \"tokens_per_s\": expected a number "
                                    "from 0 to 1e+15, found -5: such figures are left out"),
                          HasSubstr("\"mfu\": expected a number from 0 to 1e+06, found -1")));
}

TEST_F(RunMetricsTest, an_account_or_verdict_with_a_figure_that_cannot_be_is_left_out) {
  const RunMetrics run = read("", R"({"ettr": -1e12,
    "ettr_account": {"wall_s": 1e300, "productive_s": 5},
    "verdict": {"steps": 40, "compute": 7, "io": 0.5}})");

  EXPECT_EQ(run.ettr, std::nullopt);
  EXPECT_THAT(run.wall_time, IsEmpty());
  EXPECT_FALSE(run.verdict);
  EXPECT_THAT(run.refused_figures,
              ElementsAre(AllOf(HasSubstr("run.json: \"ettr\""), HasSubstr("found -1")),
                          HasSubstr("\"wall_s\""), HasSubstr("\"compute\"")));
}

TEST_F(RunMetricsTest, a_record_that_is_no_object_is_told) {
  EXPECT_THAT(read("", "[]").faults,
              ElementsAre(HasSubstr("run.json: expected the record of a run, found a value of type "
                                    "array: what it says of the run is left out")));
}

// What is left for the last part may be below 0 by rounding, and where a ledger lost lines.
TEST_F(RunMetricsTest, an_account_replaces_that_of_the_record) {
  RunMetrics run = read("", kRecord);

  take_account({{"wall_s", 200}, {"productive_s", 50}, {"other_s", -1e-7}}, "ettr.jsonl", run);

  EXPECT_EQ(run.ettr, 0.25);
  EXPECT_EQ(run.wall_s, 200);
  EXPECT_THAT(run.refused_figures, IsEmpty());
}

TEST_F(RunMetricsTest, more_training_than_time_is_told) {
  RunMetrics run = read("", kRecord);

  take_account({{"wall_s", 200}, {"productive_s", 500}}, "ettr.jsonl", run);

  EXPECT_EQ(run.ettr, std::nullopt);
  EXPECT_THAT(run.refused_figures,
              ElementsAre(HasSubstr("ettr.jsonl: its account: \"ettr\": expected a number from 0 "
                                    "to 1, found 2.5")));
}

}  // namespace
}  // namespace sidestream::report
