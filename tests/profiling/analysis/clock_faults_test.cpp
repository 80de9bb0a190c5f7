#include "profiling/analysis/clock_faults.hpp"

#include <gtest/gtest.h>

#include "profiling/trace/kineto_reader.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

ClockFaults faults_of(const std::string& events) {
  const core::ScratchFolder scratch;
  return clock_faults(
      trace::read_kineto(test::write_text(scratch / "t.json", test::trace_of(events))).timeline);
}

std::string step(int number, const std::string& time_us) {
  return complete_event("user_annotation", "ProfilerStep#" + std::to_string(number), time_us,
                        "1000");
}

TEST(ClockFaultsTest, a_healthy_trace_has_none) {
  const ClockFaults faults = faults_of(
      step(3, "0") + "," + step(4, "1000") + "," + complete_event("cpu_op", "a", "0", "500") + "," +
      complete_event("cpu_op", "b", "100", "400.05") + "," +
      complete_event("cuda_runtime", "cudaLaunchKernel", "510", "5", R"("correlation":1)") + "," +
      complete_event("kernel", "k", "505", "90", R"("correlation":1,"stream":7)"));

  EXPECT_FALSE(faults.any());
  EXPECT_EQ(describe(faults), "");
}

TEST(ClockFaultsTest, each_kind_is_counted) {
  const ClockFaults faults = faults_of(
      step(3, "0") + "," + step(4, "500") + "," + step(5, "1500") + "," +
      complete_event("cpu_op", "a", "0", "500") + "," +
      complete_event("cpu_op", "b", "200", "700") + "," +
      complete_event("cuda_runtime", "cudaLaunchKernel", "910", "5", R"("correlation":1)") + "," +
      complete_event("kernel", "k", "300", "90", R"("correlation":1,"stream":7)"));

  EXPECT_EQ(faults.steps, 1u);
  EXPECT_EQ(faults.crossings, 1u);
  EXPECT_EQ(faults.launches, 1u);
  EXPECT_EQ(
      describe(faults),
      "1 step that begins before the one before it ends, 1 call that ends after the call that "
      "it began in, 1 kernel that begins before its launch");
  EXPECT_EQ(describe({.steps = 2, .launches = 3}),
            "2 steps that begin before the one before them ends, 3 kernels that begin before their "
            "launch");
}

TEST(ClockFaultsTest, work_that_is_longer_than_all_steps_is_counted) {
  const auto lengths_with = [](const char* category, const char* duration_us) {
    return faults_of(step(3, "0") + "," + step(4, "1000") + "," +
                     complete_event(category, "x", "900", duration_us, R"("stream":7)"))
        .lengths;
  };
  for (const char* category : {"kernel", "gpu_memcpy", "cpu_op"}) {
    EXPECT_EQ(lengths_with(category, "2000"), 0u) << category;
    EXPECT_EQ(lengths_with(category, "3600000000"), 1u) << category;
  }
  EXPECT_EQ(lengths_with("user_annotation", "3600000000"), 0u) << "a range of the user's own";
  EXPECT_EQ(describe({.lengths = 1}), "1 operation that is longer than all steps from end to end");
}

}  // namespace
}  // namespace sidestream::analysis
