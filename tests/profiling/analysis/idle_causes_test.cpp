// Idle time by its causes, each on a trace by hand where its time is known.
#include "profiling/analysis/idle_causes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiling/analysis/event_class.hpp"
#include "tests/profiling/analysed.hpp"
#include "tests/profiling/trace/database.hpp"

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

// A kernel that ends at 100, a wait for it until 110, and an operator before the next launch at
// 200, whose kernel begins at 220.
std::string wait_and_go_on(const std::string& wait_start, const std::string& wait_us) {
  std::string events = complete_event("user_annotation", "ProfilerStep#3", "0", "500");
  for (const std::string& event :
       {launch("1", 1), kernel("0", 1),
        complete_event("cuda_runtime", "cudaStreamSynchronize", wait_start, wait_us),
        complete_event("cpu_op", "aten::add", "120", "60"), launch("200", 2), kernel("220", 2)})
    events += "," + event;
  return events;
}

TEST(IdleCausesTest, the_way_to_the_next_launch_belongs_to_the_wait_that_emptied_the_queue) {
  const test::Analysed analysed(wait_and_go_on("10", "100"));
  const IdleCauses& idle = analysed.all.ranks.at(0).steps.at(0).idle;

  EXPECT_EQ(idle.sync_ns, 120'000);
  EXPECT_EQ(idle.after_sync_ns, 110'000);
  EXPECT_EQ(idle.host_ns, 0);
  EXPECT_EQ(idle.sum_ns(), analysed.all.ranks.at(0).steps.at(0).budget.idle_ns);
}

TEST(IdleCausesTest, a_wait_that_found_no_kernel_did_not_empty_the_queue) {
  const test::Analysed analysed(wait_and_go_on("105", "5"));
  const IdleCauses& idle = analysed.all.ranks.at(0).steps.at(0).idle;

  EXPECT_EQ(idle.sync_ns, 5'000);
  EXPECT_EQ(idle.after_sync_ns, 0);
  EXPECT_EQ(idle.host_ns, 95'000 + 5'000) << "nothing was launched, and the launch";
}

// Waiting for data has a cause of its own, also behind a synchronisation.
TEST(IdleCausesTest, data_after_a_wait_is_waiting_for_data) {
  const test::Analysed analysed(wait_and_go_on("10", "100") + "," +
                                complete_event("user_annotation", "data", "120", "50"));
  const IdleCauses& idle = analysed.all.ranks.at(0).steps.at(0).idle;

  EXPECT_EQ(idle.data_ns, 50'000);
  EXPECT_EQ(idle.sync_ns, 70'000);
}

// A kernel of [100, 200) and one of [900, 1000); the thread that launches them waits for a mutex in
// [300, 700) and sleeps in [750, 800). A graph ran from 210 to 280: nobody knows what was in it.
constexpr const char* kLockedExport =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1,'gemm'),(2,'cudaLaunchKernel_v7000'),"
    "(3,'pthread_mutex_lock'),(4,'nanosleep');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT,deviceId INT,streamId INT,"
    "correlationId INT,globalPid INT,shortName INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100,200,0,7,1,16777216,1),"
    "(900,1000,0,7,2,16777216,1);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT,end INT,deviceId INT,streamId INT,"
    "correlationId INT,globalPid INT,graphId INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (210,280,0,7,3,16777216,1);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT,end INT,globalTid INT,correlationId INT,"
    "nameId INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90,95,16777217,1,2),(890,895,16777217,2,2);"
    "CREATE TABLE OSRT_API(start INT,end INT,globalTid INT,nameId INT);"
    "INSERT INTO OSRT_API VALUES (300,700,16777217,3),(750,800,16777217,4);"
    "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT);"
    "INSERT INTO NVTX_EVENTS VALUES (100,1000,59,'ProfilerStep#5',16777217);";

TEST(IdleCausesTest, locks_and_graphs_of_nsys) {
  const core::ScratchFolder scratch;
  const auto file = test::make_database(scratch / "a.sqlite", kLockedExport);
  trace::TraceSet set = trace::load_traces(trace::find_traces({file}), {.threads = 1});
  const Analysis all = analyse(set, 1);

  const StepRow& step = all.ranks.at(0).steps.at(0);
  EXPECT_EQ(step.budget.compute_ns, 200);
  EXPECT_EQ(step.budget.idle_ns, 700);
  EXPECT_EQ(step.idle.lock_ns, 400);
  EXPECT_THAT(set.warnings,
              ::testing::Contains(::testing::StartsWith("1 launches of CUDA graphs (70 ns) hide "
                                                        "their kernels and are not counted")));
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
