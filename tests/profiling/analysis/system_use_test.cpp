#include "profiling/analysis/system_use.hpp"

#include <gtest/gtest.h>

#include "tests/profiling/analysed.hpp"

namespace sidestream::analysis {
namespace {

using test::Analysed;
using test::complete_event;
using test::counter_event;

// A step from 100 to 200 us.
const std::string kStep = complete_event("user_annotation", "ProfilerStep#4", "100", "100") + "," +
                          complete_event("cpu_op", "aten::mm", "110", "80");

std::string cpu(const char* at, int running) {
  return "," + counter_event("process cpu [%]", at,
                             R"("running":)" + std::to_string(running) + R"(,"waiting":50)");
}

TEST(SystemUseTest, samples_count_as_much_as_of_their_time_lies_in_steps) {
  // The first one is of an unknown time; 30 us of 200 %, 60 us of 100 %; the last lies outside.
  const SystemUse use = Analysed(kStep + cpu("90", 900) + cpu("130", 200) + cpu("190", 100) +
                                 cpu("240", 100) + cpu("300", 900))
                            .all.system;

  EXPECT_EQ(use.samples, 2u);
  ASSERT_TRUE(use.process_cores);
  EXPECT_NEAR(*use.process_cores, (30 * 2.0 + 60 * 1.0 + 10 * 1.0) / 100, 1e-9);
  EXPECT_NEAR(*use.process_cores_short, 0.5, 1e-9);
  EXPECT_FALSE(use.machine_cpu);
  EXPECT_FALSE(use.disk_busy);
}

TEST(SystemUseTest, the_busiest_disk_is_named) {
  std::string samples;
  for (const char* at : {"120", "150", "180"})
    samples += "," + counter_event("disk busy [%]", at, R"("sda":20,"sdb":95)");
  const SystemUse use = Analysed(kStep + samples).all.system;

  EXPECT_EQ(use.disk, "sdb");
  EXPECT_NEAR(use.disk_busy.value(), 0.95, 1e-9);
}

// Two GPUs of 300 and 500 W over steps of 100 us with 10 tokens of the whole job.
TEST(SystemUseTest, energy_of_all_gpus_is_over_the_tokens_of_the_same_time) {
  const auto events = [](double watts) {
    std::string text;
    for (int step = 0; step < 4; ++step)
      text += (step == 0 ? "" : ",") + complete_event("user_annotation",
                                                      "ProfilerStep#" + std::to_string(step + 4),
                                                      std::to_string(100 + 100 * step), "100");
    for (int at_us = 50; at_us <= 500; at_us += 50)
      text += "," + counter_event("gpu energy [J]", std::to_string(at_us),
                                  R"("board":)" + std::to_string(watts * 1e-6 * at_us));
    return text;
  };
  const core::ScratchFolder scratch;
  const auto write = [&](int rank, double watts) {
    std::string text = test::trace_of(events(watts), rank, 2);
    text.insert(1, R"("sidestream":{"tokens_per_step":10},)");
    test::write_text(scratch / ("rank-" + std::to_string(rank) + ".json"), text);
  };
  const auto joules = [&] {
    trace::TraceSet set = trace::load_traces(trace::find_traces({scratch.path()}), {.threads = 1});
    return analyse(set, 1).system.joules_per_token;
  };

  write(0, 300);
  EXPECT_FALSE(joules());  // one of two
  write(1, 500);
  EXPECT_NEAR(joules().value(), 800 * 10e-6, 1e-6);
}

TEST(SystemUseTest, a_trace_without_samples_says_nothing) {
  const SystemUse use = Analysed(kStep).all.system;

  EXPECT_EQ(use.samples, 0u);
  EXPECT_FALSE(use.process_cores);
}

}  // namespace
}  // namespace sidestream::analysis
