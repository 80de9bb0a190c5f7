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
  EXPECT_EQ(describe(faults),
            "1 steps that begin before the one before them ends, 1 calls that end after the call "
            "that they began in, 1 kernels that begin before their launch");
}

}  // namespace
}  // namespace sidestream::analysis
