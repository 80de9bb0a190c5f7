// Steps that are nobody's mean: where a recording ends in one, and where one is far too long.
#include "profiling/analysis/singular_steps.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "profiling/report/json_report.hpp"
#include "profiling/report/text_report.hpp"
#include "profiling/report/urgent_lines.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

constexpr int kManySteps = 20;
constexpr int kTypicalStepUs = 1000;

std::string range(const std::string& name, int start_us, int length_us,
                  const std::string& arguments = "") {
  return complete_event("user_annotation", name, std::to_string(start_us),
                        std::to_string(length_us), arguments);
}

std::string collective(int start_us, int length_us, int sequence, const std::string& more = "",
                       int bucket = 3) {
  std::string event = range("allreduce", start_us, length_us,
                            R"("payload bytes":4000000,"bucket":)" + std::to_string(bucket) +
                                R"(,"sequence":)" + std::to_string(sequence) + more);
  return event.replace(event.find("\"tid\":1"), 7, "\"tid\":99");
}

std::string named(const std::string& name, std::string event) {
  return event.replace(event.find("allreduce"), 9, name);
}

struct MadeRun {
  int long_step = 0;  // in which rank 1 stalls in forward; 0: in none
  int stall_us = 0;
  bool ends_in_stall = false;  // the recordings end there
  bool goes_on = false;        // ... and others follow
  // What rank 1 is in then, as rank 0 is in "allreduce", bucket 3; nothing: in no collective.
  struct Inside {
    int bucket = 3;
    int sequence_lag = 0;  // behind rank 0
    std::string name = "allreduce";
  };
  std::optional<Inside> inside = {};
  // Instead, rank 1 is in no step: it has finished this one, or the one before.
  enum class Ends { kNot, kBefore, kAfter } ends = Ends::kNot;
};

class SingularStepsTest : public ::testing::Test {
 protected:
  void make(const MadeRun& run) {
    for (int rank = 0; rank < 2; ++rank) {
      test::write_text(scratch_ / ("a/rank-" + std::to_string(rank) + ".json"),
                       test::trace_of(events_of(run, rank), rank, 2));
      if (!run.goes_on) continue;
      const int now_us = (run.long_step + 1) * kTypicalStepUs + run.stall_us;
      test::write_text(scratch_ / ("b/rank-" + std::to_string(rank) + ".json"),
                       test::trace_of(range(step_name(run.long_step), now_us, 300) + "," +
                                          range(step_name(run.long_step + 1), now_us + 300, 1000),
                                      rank, 2));
    }
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}), {.threads = 1});
    all_ = analyse(set_, 1);
  }

  static std::string step_name(int step) { return "ProfilerStep#" + std::to_string(step); }

  static std::string events_of(const MadeRun& run, int rank) {
    std::string events;
    int now_us = kTypicalStepUs;
    for (int step = 2; step < 2 + kManySteps; ++step) {
      const bool stalls = step == run.long_step;
      if (stalls && rank == 1 && run.ends == MadeRun::Ends::kBefore) break;
      const int stall_us = stalls ? run.stall_us : 0;
      const bool past = rank == 1 && run.ends == MadeRun::Ends::kAfter;
      const bool open = stalls && run.ends_in_stall && !past;
      const std::string mark = open ? R"("open":true)" : "";
      const int forward_us = 600 + (rank == 1 ? stall_us : 0);
      const int waits_us = 200 + (rank == 0 ? stall_us : 0);
      events += (events.empty() ? "" : ",") +
                range(step_name(step), now_us, kTypicalStepUs + stall_us, mark) + "," +
                range("forward", now_us, forward_us, rank == 1 ? mark : "");
      if (!open || rank == 0)
        events += "," + collective(now_us + forward_us, waits_us, step, open ? "," + mark : "");
      else if (run.inside)
        events += "," + named(run.inside->name,
                              collective(now_us + 500, stall_us, step - run.inside->sequence_lag,
                                         "," + mark, run.inside->bucket));
      if (open) break;
      now_us += kTypicalStepUs + stall_us;
    }
    return events;
  }

  std::string first_fault() const { return report::fault_lines(all_).front(); }
  std::string text() const { return report::text_report(all_, {}, {.width_columns = 100}); }

  core::ScratchFolder scratch_;
  trace::TraceSet set_;
  Analysis all_;
};

TEST_F(SingularStepsTest, a_hang_is_named_first_and_is_in_no_mean) {
  make({.long_step = 12, .stall_us = 5'000'000, .ends_in_stall = true});

  ASSERT_TRUE(all_.hang.has_value());
  EXPECT_TRUE(all_.hang->is_sure);
  ASSERT_EQ(all_.hang->ranks.size(), 2u);
  const StandingRank& hangs = all_.hang->ranks[0];
  EXPECT_EQ(hangs.rank, 1);
  EXPECT_EQ(hangs.phase, "forward");
  EXPECT_EQ(hangs.step, 12);
  EXPECT_FALSE(hangs.waits());
  EXPECT_EQ(hangs.since_ns, 5'000'600'000);
  EXPECT_EQ(all_.hang->ranks[1].collective, "allreduce");
  EXPECT_EQ(all_.hang->ranks[1].bucket, 3);
  for (const StepRow* step : plain_steps(all_.ranks)) EXPECT_LE(step->budget.window_ns, 1'000'000);
  EXPECT_EQ(plain_steps(all_.ranks).size(), 20u);
  for (const Operation& one : all_.operations) EXPECT_LT(one.total_ns, 100'000'000) << one.name;
  EXPECT_EQ(all_.collectives.front().count, 10);
  EXPECT_LT(all_.collectives.front().exposed_ns, 10'000'000);
  const std::string said = text();
  EXPECT_LT(said.find("Hang: rank 1 in forward of step 12 for 5.001 s; rank 0 waits in allreduce"),
            said.find("Verdict:"))
      << said;
  EXPECT_NE(said.find("Mean of 20 steps of 2 ranks together (left out: 2 unfinished)"),
            std::string::npos)
      << said;
  const auto json = report::json_summary(all_, {});
  EXPECT_EQ(json["hang"]["ranks"][0]["phase"], "forward");
  EXPECT_EQ(json["hang"]["ranks"][0]["collective"], nullptr);
  EXPECT_EQ(json["hang"]["awaited"], std::vector<int>{1});
}

TEST_F(SingularStepsTest, a_hang_inside_the_same_collective_blames_nobody) {
  make(
      {.long_step = 12, .stall_us = 5'000'000, .ends_in_stall = true, .inside = MadeRun::Inside{}});

  ASSERT_TRUE(all_.hang.has_value());
  EXPECT_TRUE(all_.hang->is_sure);
  EXPECT_TRUE(all_.hang->awaited().empty());
  EXPECT_TRUE(all_.hang->all_in_one());
  EXPECT_NE(first_fault().find("every rank is inside it"), std::string::npos) << first_fault();
}

TEST_F(SingularStepsTest, a_rank_inside_an_earlier_collective_is_waited_for) {
  make({.long_step = 12,
        .stall_us = 5'000'000,
        .ends_in_stall = true,
        .inside = MadeRun::Inside{.bucket = 2, .sequence_lag = 1}});

  ASSERT_TRUE(all_.hang.has_value());
  EXPECT_EQ(all_.hang->awaited(), std::vector<int>{1});
  EXPECT_NE(first_fault().find("rank 1 is in an earlier one"), std::string::npos) << first_fault();
}

TEST_F(SingularStepsTest, of_different_collectives_nobody_can_say_which_is_earlier) {
  for (const MadeRun::Inside& inside :
       {MadeRun::Inside{.bucket = 2}, MadeRun::Inside{.sequence_lag = 1, .name = "broadcast"}}) {
    make({.long_step = 12, .stall_us = 5'000'000, .ends_in_stall = true, .inside = inside});

    ASSERT_TRUE(all_.hang.has_value());
    EXPECT_TRUE(all_.hang->all_wait());
    EXPECT_TRUE(all_.hang->awaited().empty());
    EXPECT_NE(first_fault().find("in different collectives"), std::string::npos) << first_fault();
  }
}

TEST_F(SingularStepsTest, a_rank_that_is_in_no_step_is_waited_for) {
  make({.long_step = 12,
        .stall_us = 5'000'000,
        .ends_in_stall = true,
        .ends = MadeRun::Ends::kBefore});

  ASSERT_TRUE(all_.hang.has_value());
  EXPECT_FALSE(all_.hang->all_wait());
  EXPECT_EQ(all_.hang->between_steps, std::vector<int>{1});
  EXPECT_EQ(all_.hang->awaited(), std::vector<int>{1});
  EXPECT_NE(first_fault().find("rank 1 in no step"), std::string::npos) << first_fault();
}

TEST_F(SingularStepsTest, a_rank_that_is_past_the_step_holds_nobody_up) {
  make({.long_step = kManySteps + 1,
        .stall_us = 5'000'000,
        .ends_in_stall = true,
        .ends = MadeRun::Ends::kAfter});

  ASSERT_TRUE(all_.hang.has_value());
  EXPECT_EQ(all_.hang->past, std::vector<int>{1});
  EXPECT_TRUE(all_.hang->awaited().empty());
  EXPECT_NE(first_fault().find("rank 1 past it"), std::string::npos) << first_fault();
}

TEST_F(SingularStepsTest, a_run_that_goes_on_behind_the_cut_does_not_hang) {
  make({.long_step = 12, .stall_us = 5'000'000, .ends_in_stall = true, .goes_on = true});

  EXPECT_FALSE(all_.hang.has_value());
  EXPECT_NE(text().find("(left out: 2 unfinished)"), std::string::npos) << "both files have it";
  EXPECT_EQ(plain_steps(all_.ranks).size(), 22u);
  for (const StepRow* step : plain_steps(all_.ranks)) EXPECT_EQ(step->budget.window_ns, 1'000'000);
}

TEST_F(SingularStepsTest, a_look_at_a_healthy_run_is_no_hang) {
  make({.long_step = 12, .stall_us = 0, .ends_in_stall = true});

  ASSERT_TRUE(all_.hang.has_value());
  EXPECT_FALSE(all_.hang->is_sure);
  EXPECT_TRUE(all_.hang->awaited().empty());
  EXPECT_EQ(text().find("Hang"), std::string::npos);
  EXPECT_NE(text().find("Cut off: rank 1 in forward of step 12"), std::string::npos) << text();
}

// A look at two ranks after ten steps of 1 ms: rank 1 has been in this phase for 30 ms, and rank 0
// too or waiting for it. `finished_us`: another such phase, in the fifth step; 0: none.
std::string looked_at(int rank, const std::string& phase, int finished_us, bool waits) {
  std::string events;
  int now_us = 0;
  for (int step = 1; step <= 10; ++step) {
    const int aside_us = step == 5 ? finished_us : 0;
    events += range("ProfilerStep#" + std::to_string(step), now_us, 1000 + aside_us) + ",";
    if (aside_us > 0) events += range(phase, now_us + 1000, aside_us) + ",";
    now_us += 1000 + aside_us;
  }
  const std::string open = R"("open":true)";
  events += range("ProfilerStep#11", now_us, 31'000, open) + ",";
  return events + (waits && rank == 0 ? collective(now_us + 1000, 30'000, 7, "," + open)
                                      : range(phase, now_us + 1000, 30'000, open));
}

TEST_F(SingularStepsTest, evaluating_and_saving_hang_by_how_long_they_take) {
  const auto is_sure = [&](const std::string& phase, int finished_us, bool waits) {
    for (int rank = 0; rank < 2; ++rank)
      test::write_text(scratch_ / ("a/rank-" + std::to_string(rank) + ".json"),
                       test::trace_of(looked_at(rank, phase, finished_us, waits), rank, 2));
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}), {.threads = 1});
    all_ = analyse(set_, 1);
    return all_.hang.value().is_sure;
  };

  for (const char* phase : {"eval", "checkpoint"}) {
    for (const bool waits : {false, true}) {
      EXPECT_FALSE(is_sure(phase, 0, waits)) << phase << ": none is finished, nobody can tell";
      EXPECT_NE(text().find("Cut off: rank "), std::string::npos) << text();
      EXPECT_FALSE(is_sure(phase, 12'000, waits)) << phase << ": the last one took 12 ms";
      EXPECT_TRUE(is_sure(phase, 2'000, waits)) << phase << ": the last one took 2 ms";
    }
  }
  EXPECT_TRUE(is_sure("forward", 12'000, false)) << "every step has one";
}

TEST_F(SingularStepsTest, a_rank_without_a_recording_is_said) {
  test::write_text(
      scratch_ / "c/rank-0.json",
      test::trace_of(events_of({.long_step = 12, .stall_us = 9'000'000, .ends_in_stall = true}, 0),
                     0, 2));
  set_ = trace::load_traces(trace::find_traces({scratch_.path()}), {.threads = 1});
  all_ = analyse(set_, 1);

  ASSERT_TRUE(all_.hang.has_value());
  EXPECT_EQ(all_.hang->without_records, std::vector<int>{1});
  EXPECT_NE(text().find("Rank 1 left no recording"), std::string::npos) << text();
}

// A rank was killed: what it left is an earlier look at a healthy run. The other one wrote down
// twice where it waits.
TEST_F(SingularStepsTest, a_rank_whose_last_recording_is_older_comes_first_and_nobody_hangs) {
  const std::string mark = R"("open":true)";
  const auto write = [&](const std::string& file, int rank, const MadeRun& run) {
    test::write_text(scratch_ / file, test::trace_of(events_of(run, rank), rank, 2));
  };
  write("a/rank-0.json", 0, {.long_step = 12, .stall_us = 9'000, .ends_in_stall = true});
  test::write_text(scratch_ / "b/rank-0.json",
                   test::trace_of(range(step_name(12), 30'000, 9'800, mark) + "," +
                                      collective(30'100, 9'700, 12, "," + mark),
                                  0, 2));
  write("a/rank-1.json", 1, {.long_step = 6, .stall_us = 0, .ends_in_stall = true});
  set_ = trace::load_traces(trace::find_traces({scratch_.path()}), {.threads = 1});
  all_ = analyse(set_, 1);

  ASSERT_TRUE(all_.hang.has_value());
  EXPECT_EQ(all_.hang->without_records, std::vector<int>{1});
  ASSERT_EQ(all_.hang->ranks.size(), 1u);
  EXPECT_EQ(all_.hang->ranks[0].rank, 0);
  EXPECT_EQ(all_.hang->ranks[0].since_ns, 9'700'000);
  EXPECT_EQ(text().find("Hang"), std::string::npos) << text();
  EXPECT_LT(text().find("Rank 1 left no recording"), text().find("rank 0 waits")) << text();
}

TEST_F(SingularStepsTest, one_stall_is_an_outlier_and_in_no_mean) {
  make({.long_step = 12, .stall_us = 500'000});

  EXPECT_FALSE(all_.hang.has_value());
  ASSERT_EQ(all_.outliers.size(), 1u);
  EXPECT_EQ(all_.outliers[0].step, 12);
  EXPECT_EQ(all_.outliers[0].rank, 1);
  EXPECT_EQ(all_.outliers[0].phase, "forward");
  EXPECT_NEAR(all_.outliers[0].medians, 501, 1);
  for (const StepRow* step : plain_steps(all_.ranks)) EXPECT_EQ(step->budget.window_ns, 1'000'000);
  EXPECT_FALSE(all_.straggler.has_value());
  const std::string line = "Outlier: step 12 took 501 ms, 501 times the median: rank 1 in forward";
  EXPECT_NE(text().find(line), std::string::npos) << text();
  EXPECT_EQ(report::urgent_lines(all_), std::vector{line});
}

TEST_F(SingularStepsTest, every_outlier_of_a_file_has_its_own_phase) {
  std::string events;
  int now_us = 0;
  for (int step = 2; step <= 41; ++step) {
    const int length_us = step == 10 || step == 20 ? 90'000 : 1000;
    events += (events.empty() ? "" : ",") + range(step_name(step), now_us, length_us) + "," +
              range(step == 10 ? "data" : "forward", now_us, length_us - 100);
    now_us += length_us;
  }
  test::write_text(scratch_ / "a/rank-0.json", test::trace_of(events));
  set_ = trace::load_traces(trace::find_traces({scratch_.path()}), {.threads = 1});
  all_ = analyse(set_, 1);

  ASSERT_EQ(all_.outliers.size(), 2u);
  EXPECT_EQ(all_.outliers[0].phase, "data");
  EXPECT_EQ(all_.outliers[1].phase, "forward");
}

// Rank 0 saves for 30 ms in a step, and rank 1 has nothing but its wait of that.
TEST_F(SingularStepsTest, a_step_in_which_one_rank_saves_or_evaluates_is_in_the_mean_of_none) {
  for (const char* phase : {"checkpoint", "eval"}) {
    for (int rank = 0; rank < 2; ++rank) {
      std::string events;
      int now_us = 0;
      for (int step = 2; step < 22; ++step) {
        const int aside_us = step == 12 ? 30'000 : 0;
        const int own_us = rank == 0 ? aside_us : 0;
        events += (events.empty() ? "" : ",") + range(step_name(step), now_us, 1000 + aside_us) +
                  "," + range("forward", now_us, 600) + "," +
                  collective(now_us + 600 + own_us, 200 + aside_us - own_us, step);
        if (own_us > 0) events += "," + range(phase, now_us + 600, own_us);
        now_us += 1000 + aside_us;
      }
      test::write_text(scratch_ / ("a/rank-" + std::to_string(rank) + ".json"),
                       test::trace_of(events, rank, 2));
    }
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}), {.threads = 1});
    all_ = analyse(set_, 1);

    for (const RankView& rank : all_.ranks)
      EXPECT_EQ(rank.steps.at(10).tags, std::vector<std::string>{phase});
    EXPECT_EQ(plain_steps(all_.ranks).size(), 38u);
    for (const StepRow* step : plain_steps(all_.ranks))
      EXPECT_EQ(step->budget.window_ns, 1'000'000);
    EXPECT_TRUE(all_.outliers.empty()) << "it is known why it is long";
  }
}

// Steps of 1 ms from this one on, in a file whose head is `head`; how many count.
std::size_t plain_steps_from(int first, const std::string& head) {
  const core::ScratchFolder scratch;
  std::string events;
  for (int step = first; step < first + 4; ++step)
    events += (events.empty() ? "" : ",") +
              range("ProfilerStep#" + std::to_string(step), 1000 * step, 1000) + "," +
              range("forward", 1000 * step, 900);
  test::write_text(scratch / "rank-0.json", test::trace_of(events).insert(1, head));
  trace::TraceSet set = trace::load_traces(trace::find_traces({scratch.path()}), {.threads = 1});
  return plain_steps(analyse(set, 1).ranks).size();
}

TEST_F(SingularStepsTest, the_first_step_of_a_run_is_told_by_how_its_program_counts) {
  const std::string ours = R"("sidestream":{"tokens_per_step":128},)";
  EXPECT_EQ(plain_steps_from(1, ours), 3u) << "our trainer counts from 1";
  EXPECT_EQ(plain_steps_from(2, ours), 4u);
  EXPECT_EQ(plain_steps_from(0, ""), 3u) << "torch.profiler counts from 0";
  EXPECT_EQ(plain_steps_from(1, ""), 4u) << "and its step 1 is the second one";
}

TEST_F(SingularStepsTest, steps_that_are_long_now_and_then_are_the_run) {
  make({.long_step = 12, .stall_us = 3'000});
  EXPECT_TRUE(all_.outliers.empty());
}

}  // namespace
}  // namespace sidestream::analysis
