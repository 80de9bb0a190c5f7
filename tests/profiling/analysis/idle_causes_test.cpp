// Idle time by its causes, each on a trace by hand where its time is known.
#include "profiling/analysis/idle_causes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiling/analysis/event_class.hpp"
#include "tests/profiling/analysed.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

std::string launch(const std::string& time, int correlation) {
  return complete_event("cuda_runtime", "cudaLaunchKernel", time, "5",
                        R"("correlation":)" + std::to_string(correlation));
}

std::string kernel(const std::string& time, int correlation) {
  return complete_event("kernel", "k", time, "100",
                        R"("stream":7,"correlation":)" + std::to_string(correlation));
}

// [0, 100) and [800, 900) a kernel, the second launched at 700; between them each cause for 100 us.
TEST(IdleCausesTest, each_cause_has_its_own_time) {
  std::string events;
  for (const std::string& event :
       {complete_event("user_annotation", "ProfilerStep#3", "0", "1000"), launch("1", 1),
        kernel("0", 1), complete_event("user_annotation", "data", "100", "100"),
        complete_event("cuda_runtime", "cudaStreamSynchronize", "200", "110"),
        complete_event("cpu_op", "aten::add", "310", "90"),
        complete_event("lock", "pthread_mutex_lock", "400", "120"),
        complete_event("user_annotation", "allreduce", "520", "80"), launch("700", 2),
        kernel("800", 2)})
    events += (events.empty() ? "" : ",") + event;

  const test::Analysed analysed(events);
  const StepRow& step = analysed.all.ranks.at(0).steps.at(0);
  EXPECT_EQ(step.budget.idle_ns, 800'000);
  EXPECT_EQ(step.idle.data_ns, 100'000);
  EXPECT_EQ(step.idle.sync_ns, 110'000);
  EXPECT_EQ(step.idle.lock_ns, 120'000);
  EXPECT_EQ(step.idle.comm_ns, 80'000);
  // The operator, nothing launched until 700, and the launch itself.
  EXPECT_EQ(step.idle.host_ns, 90'000 + 100'000 + 5'000);
  EXPECT_EQ(step.idle.other_ns, 95'000 + 100'000);
}

// What feeds a device is told by the calls that launch.
TEST(IdleCausesTest, launches_of_every_kind_are_launches) {
  for (const char* call : {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel",
                           "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cudaGraphLaunch",
                           "hipLaunchCooperativeKernel"})
    EXPECT_EQ(class_of(call), NameClass::kLaunchCall) << call;
  EXPECT_EQ(class_of("cudaMalloc"), NameClass::kPlain);
}

}  // namespace
}  // namespace sidestream::analysis
