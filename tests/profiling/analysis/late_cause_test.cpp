// Why a rank is late, in traces by hand of programs that are not Sidestream and of its own.
#include "profiling/analysis/late_cause.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/text_report.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

constexpr int kSteps = 8, kLate = 1;

// What rank 1 does longer, in microseconds of a step. A rank computes for 2 ms in forward and for
// 4 ms in backward, in whose middle a collective begins on a thread of its own.
struct LateRun {
  std::string collective = "gloo:all_reduce";
  bool has_phases = false;
  int forward_us = 0, backward_us = 0;
  int sleep_us = 0;         // after forward
  std::string around = {};  // a range around the sleep
  int starts_late_us = 0;   // the second collective, for which the thread of the steps waits
  int first_us = 0;         // step 0, all of it in forward; 0: none
};

class LateCauseTest : public ::testing::Test {
 protected:
  std::string cause(const LateRun& run) {
    for (int rank = 0; rank < 3; ++rank)
      test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"), trace(run, rank));
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}));
    all_ = analyse(set_, 1);
    if (!all_.straggler || all_.straggler->rank != kLate) return "no straggler";
    return all_.straggler->phase;
  }

  static std::string range(const std::string& name, int start_us, int length_us) {
    return "," + complete_event("user_annotation", name, std::to_string(start_us),
                                std::to_string(length_us));
  }

  static std::string op(const std::string& name, int start_us, int length_us) {
    return "," +
           complete_event("cpu_op", name, std::to_string(start_us), std::to_string(length_us));
  }

  static std::string flight(const std::string& name, int start_us, int end_us) {
    std::string event = range(name, start_us, end_us - start_us);
    return event.replace(event.find("\"tid\":1"), 7, "\"tid\":99");
  }

  static std::string trace(const LateRun& run, int rank) {
    std::string events;
    const int first_us = rank == kLate ? run.first_us : run.first_us / 2;
    if (first_us > 0) events = range("ProfilerStep#0", 0, first_us) + range("forward", 0, first_us);
    for (int step = 0; step < kSteps; ++step) events += step_of(run, rank, step);
    return R"({"traceName":"x","deviceProperties":[],"distributedInfo":{"backend":"gloo","rank":)" +
           std::to_string(rank) + R"(,"world_size":3},"traceEvents":[)" + events.substr(1) + "]}";
  }

  // All ranks leave a collective when the last one has come to it.
  static std::string step_of(const LateRun& run, int rank, int step) {
    const bool late = rank == kLate;
    const int all_us = run.forward_us + run.backward_us + run.sleep_us + run.starts_late_us;
    const int begin = 1'000'000 + step * (10'000 + all_us) + (step * 7 + rank * 13) % 5;
    const int forward = 2'000 + (late ? run.forward_us : 0), sleep = late ? run.sleep_us : 0;
    const int backward = 4'000 + (late ? run.backward_us : 0);
    const int backward_at = begin + forward + sleep, ends = backward_at + backward;
    const int last_half = begin + 4'000 + all_us - run.backward_us / 2 - run.starts_late_us;
    const int last = begin + 6'000 + all_us;
    const int second = ends + 50 + (late ? run.starts_late_us : 0);
    std::string events =
        range("ProfilerStep#" + std::to_string(step + 2), begin, 9'900 + all_us) +
        range("train_step", begin, 9'800 + all_us) + op("aten::mm", begin, forward) +
        op("aten::mm", backward_at, backward) + op("aten::add", last + 500, 1'000) +
        flight(run.collective, backward_at + backward / 2, std::max(last_half + 300, 0)) +
        flight(run.collective, second, last + 400);
    if (run.has_phases)
      events += range("forward", begin, forward) + range("backward", backward_at, backward);
    if (late && !run.around.empty()) events += range(run.around, begin + forward, sleep);
    return events;
  }

  std::string text() const { return report::text_report(all_, {}, {.width_columns = 200}); }

  core::ScratchFolder scratch_;
  trace::TraceSet set_;
  Analysis all_;
};

TEST_F(LateCauseTest, operators_that_take_longer_are_computing_and_not_the_collective) {
  EXPECT_EQ(cause({.forward_us = 8'000}), statistics::kComputing);
  EXPECT_NE(text().find("rank 1 is late in computing"), std::string::npos) << text();
}

TEST_F(LateCauseTest, a_sleep_outside_collectives_is_other_work_of_the_host) {
  EXPECT_EQ(cause({.sleep_us = 8'000}), statistics::kOtherWork);
  EXPECT_NE(text().find("rank 1 is late in other work of the host"), std::string::npos) << text();
}

TEST_F(LateCauseTest, the_users_range_around_it_is_named_and_not_the_one_around_the_step) {
  EXPECT_EQ(cause({.sleep_us = 8'000, .around = "dataload"}), "dataload");
}

TEST_F(LateCauseTest, phases_that_explain_it_only_together_are_computing) {
  EXPECT_EQ(cause({.collective = "allreduce",
                   .has_phases = true,
                   .forward_us = 2'200,
                   .backward_us = 2'000,
                   .sleep_us = 1'500}),
            statistics::kComputing);
}

TEST_F(LateCauseTest, one_phase_that_explains_it_is_named) {
  EXPECT_EQ(cause({.collective = "allreduce", .has_phases = true, .forward_us = 8'000}), "forward");
}

TEST_F(LateCauseTest, what_the_first_step_sets_up_is_no_cause) {
  EXPECT_EQ(cause({.collective = "allreduce",
                   .has_phases = true,
                   .backward_us = 8'000,
                   .first_us = 900'000}),
            "backward");
}

TEST_F(LateCauseTest, a_collective_that_begins_late_after_nothing_is_named_where_it_is_ours) {
  EXPECT_EQ(cause({.collective = "allreduce", .has_phases = true, .starts_late_us = 8'000}),
            "allreduce");
  EXPECT_EQ(cause({.starts_late_us = 8'000}), "") << "who knows what gloo's threads did";
}

}  // namespace
}  // namespace sidestream::analysis
