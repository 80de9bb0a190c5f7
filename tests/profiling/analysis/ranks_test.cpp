// Questions across ranks, on hand-made runs: who is slow, and what time is it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "profiling/analysis/analysis.hpp"
#include "profiling/analysis/late_cause.hpp"
#include "profiling/analysis/step_gaps.hpp"
#include "profiling/trace/trace_set.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

struct MadeRun {
  int ranks = 3;
  int steps = 20;
  int slow_rank = -1;
  std::string slow_phase = "data";  // or "forward", "between": where it sleeps
  std::int64_t sleep_us = 0;
  std::int64_t noise_us = 0;   // each rank is late by up to that much, in forward, each step anew
  std::int64_t offset_us = 0;  // of rank 1's clock
  double drift_ppm = 0;        // of rank 1's clock
};

class RanksTest : public ::testing::Test {
 protected:
  // 10 ms steps: data, forward, then one all-reduce that all ranks leave together, 200 us after the
  // last one came.
  void make(const MadeRun& run) {
    for (int rank = 0; rank < run.ranks; ++rank) {
      std::string events;
      for (int step = 0; step < run.steps; ++step)
        events += (step == 0 ? "" : ",") + step_of(run, rank, step);
      test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                       test::trace_of(events, rank, run.ranks));
    }
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}));
    analysis_ = analyse(set_, 1);
  }

  // When a rank comes to the all-reduce, after a healthy one.
  static std::int64_t late_us(const MadeRun& run, int rank, int step) {
    std::mt19937 random(static_cast<unsigned>(step * 101 + rank * 7 + 1));
    const std::int64_t noise = run.noise_us == 0 ? 0 : random() % run.noise_us;
    return (rank == run.slow_rank ? run.sleep_us : 0) + noise + (step * 7 + rank * 13) % 5;
  }

  static std::string step_of(const MadeRun& run, int rank, int step) {
    const std::int64_t length = 10'000 + run.sleep_us + run.noise_us;
    const std::int64_t begin = 1'000'000 + step * length;
    const std::int64_t own_sleep = rank == run.slow_rank ? run.sleep_us : 0;
    const std::int64_t between = run.slow_phase == "between" ? own_sleep : 0;
    const std::int64_t in_data = run.slow_phase == "data" ? own_sleep : 0;
    const std::int64_t in_forward = late_us(run, rank, step) - between - in_data;
    const std::int64_t start = begin + between, arrives = begin + 6'000 + late_us(run, rank, step);
    std::int64_t leaves = 0;
    for (int other = 0; other < run.ranks; ++other)
      leaves = std::max(leaves, begin + 6'200 + late_us(run, other, step));
    const auto at = [&](std::int64_t time) { return clock(run, rank, time); };
    return complete_event("user_annotation", "ProfilerStep#" + std::to_string(step + 2), at(start),
                          std::to_string(length - between)) +
           "," +
           complete_event("user_annotation", "data", at(start), std::to_string(500 + in_data)) +
           "," +
           complete_event("user_annotation", "forward", at(start + 500 + in_data),
                          std::to_string(5500 + in_forward)) +
           "," +
           complete_event("kernel", "gemm", at(start + 600 + in_data),
                          std::to_string(5000 + in_forward), R"("stream":7)") +
           "," +
           complete_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at(arrives),
                          std::to_string(leaves - arrives), R"("stream":9)");
  }

  static std::string clock(const MadeRun& run, int rank, std::int64_t time_us) {
    if (rank != 1) return std::to_string(time_us);
    const auto drift_ns =
        static_cast<std::int64_t>(run.drift_ppm * 1e-3 * static_cast<double>(time_us));
    const std::int64_t time_ns = (time_us + run.offset_us) * 1000 + drift_ns;
    return std::to_string(time_ns / 1000) + "." + std::to_string(1000 + time_ns % 1000).substr(1);
  }

  core::ScratchFolder scratch_;
  trace::TraceSet set_;
  Analysis analysis_;
};

TEST_F(RanksTest, a_healthy_run_has_no_straggler) {
  make({});
  EXPECT_FALSE(analysis_.straggler.has_value());
  EXPECT_EQ(analysis_.matches.matched.size(), 20u);
}

TEST_F(RanksTest, a_slow_loader_is_found_with_its_phase_and_cost_although_clocks_are_off) {
  make({.slow_rank = 2, .sleep_us = 4'000, .offset_us = 5'000});

  ASSERT_TRUE(analysis_.straggler.has_value());
  EXPECT_EQ(analysis_.straggler->rank, 2);
  EXPECT_EQ(analysis_.straggler->phase, "data");
  EXPECT_NEAR(static_cast<double>(analysis_.straggler->cost_ns_per_step), 4e6, 4e5);
}

TEST_F(RanksTest, slow_compute_is_found_with_its_phase_and_cost) {
  make({.ranks = 4, .slow_rank = 1, .slow_phase = "forward", .sleep_us = 3'000, .drift_ppm = 20});

  ASSERT_TRUE(analysis_.straggler.has_value());
  EXPECT_EQ(analysis_.straggler->rank, 1);
  EXPECT_EQ(analysis_.straggler->phase, "forward");
  EXPECT_NEAR(static_cast<double>(analysis_.straggler->cost_ns_per_step), 3e6, 3e5);
}

TEST_F(RanksTest, work_between_steps_is_found_and_shown) {
  make({.slow_rank = 0, .slow_phase = "between", .sleep_us = 4'000});

  ASSERT_TRUE(analysis_.straggler.has_value());
  EXPECT_EQ(analysis_.straggler->rank, 0);
  EXPECT_EQ(analysis_.straggler->phase, kBetweenSteps);
  EXPECT_NEAR(static_cast<double>(analysis_.straggler->cost_ns_per_step), 4e6, 4e5);
  EXPECT_EQ(step_gaps(analysis_.ranks[0]).total_ns, 19 * 4'000'000);
  EXPECT_EQ(step_gaps(analysis_.ranks[0]).unnamed_ns, 19 * 4'000'000);
  EXPECT_EQ(step_gaps(analysis_.ranks[1]).total_ns, 0);
}

TEST_F(RanksTest, a_busy_machine_has_no_straggler_but_waiting) {
  for (const int steps : {4, 6, 12}) {
    make({.ranks = 2, .steps = steps, .noise_us = 6'000});

    EXPECT_FALSE(analysis_.straggler.has_value()) << steps;
    ASSERT_TRUE(analysis_.rotating_wait_ns.has_value()) << steps;
    EXPECT_GT(*analysis_.rotating_wait_ns, 500'000);
  }
}

TEST_F(RanksTest, a_slow_rank_is_found_in_noise_with_an_interval_of_its_cost) {
  make({.slow_rank = 1, .slow_phase = "forward", .sleep_us = 6'000, .noise_us = 3'000});

  ASSERT_TRUE(analysis_.straggler.has_value());
  EXPECT_EQ(analysis_.straggler->rank, 1);
  EXPECT_EQ(analysis_.straggler->steps, 20);
  EXPECT_GE(analysis_.straggler->steps_last, 19);
  ASSERT_TRUE(analysis_.straggler->cost_low_ns.has_value());
  EXPECT_LT(*analysis_.straggler->cost_low_ns, 6'000'000);
  EXPECT_GT(*analysis_.straggler->cost_high_ns, 6'000'000);
}

TEST_F(RanksTest, a_rank_that_is_slower_by_little_is_no_straggler) {
  make({.ranks = 3, .slow_rank = 2, .sleep_us = 30});

  EXPECT_FALSE(analysis_.straggler.has_value());
}

TEST_F(RanksTest, offset_is_recovered_within_the_published_uncertainty) {
  make({.offset_us = 100'000});

  EXPECT_EQ(set_.clock.method, "collectives");
  const double error_us =
      std::abs(static_cast<double>(set_.clock.of(1).offset_ns) / 1000 + 100'000);
  EXPECT_LE(error_us, set_.clock.uncertainty_us.at(1) + 0.001);
  EXPECT_LE(set_.clock.residual_us_p95, 0.001);
}

TEST_F(RanksTest, drift_is_recovered) {
  make({.steps = 200, .drift_ppm = 20});

  EXPECT_NEAR(set_.clock.of(1).drift_ppm, -20, 0.1);
  EXPECT_LE(set_.clock.residual_us_p95, 0.01);
}

TEST_F(RanksTest, one_clock_of_one_host_is_left_alone) {
  test::write_text(
      scratch_ / "clock.json",
      R"({"schema":1,"ranks":[{"rank":0,"boot_id":"a"},{"rank":1,"boot_id":"a"},{"rank":2,"boot_id":"a"}]})");
  make({.offset_us = 3});

  EXPECT_EQ(set_.clock.method, "same host");
  EXPECT_EQ(set_.clock.of(1).offset_ns, 0);
}

}  // namespace
}  // namespace sidestream::analysis
