// What bounds a run, on steps of 100 us of a host rank whose longest part is known.
#include "profiling/analysis/verdict.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/analysed.hpp"
#include "tests/profiling/trace/database.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

struct Parts {
  int data_us = 0, forward_us = 0, exposed_us = 0;
};

// Data, then forward, then a collective that nothing hides; the rest of the 100 us is nothing.
statistics::Bound verdict_of(const Parts& parts) {
  const auto range = [](const std::string& name, int start, int time) {
    return complete_event("user_annotation", name, std::to_string(start), std::to_string(time));
  };
  std::string collective = complete_event(
      "user_annotation", "allreduce", std::to_string(parts.data_us + parts.forward_us),
      std::to_string(parts.exposed_us), R"("bucket":1,"payload bytes":10,"sequence":1)");
  collective.replace(collective.find("\"tid\":1"), 7, "\"tid\":99");
  const test::Analysed analysed(
      range("ProfilerStep#3", 0, 100) + "," + range("data", 0, parts.data_us) + "," +
      range("forward", parts.data_us, parts.forward_us) + "," + collective);
  return find_verdict(analysed.all.ranks).value();
}

TEST(VerdictTest, the_longest_part_is_the_word) {
  EXPECT_EQ(verdict_of({.data_us = 60, .forward_us = 20, .exposed_us = 10}).word, "io");
  EXPECT_EQ(verdict_of({.data_us = 10, .forward_us = 60, .exposed_us = 20}).word, "compute");
  EXPECT_EQ(verdict_of({.data_us = 10, .forward_us = 20, .exposed_us = 60}).word, "comm");
  EXPECT_EQ(verdict_of({.data_us = 10, .forward_us = 20, .exposed_us = 10}).word, "cpu");
}

TEST(VerdictTest, shares_are_those_of_the_step) {
  const statistics::Bound verdict = verdict_of({.data_us = 10, .forward_us = 20, .exposed_us = 60});
  EXPECT_DOUBLE_EQ(verdict.io, 0.1);
  EXPECT_DOUBLE_EQ(verdict.compute, 0.2);
  EXPECT_DOUBLE_EQ(verdict.comm, 0.6);
  EXPECT_NEAR(verdict.cpu, 0.1, 1e-12);
}

TEST(VerdictTest, operators_of_a_host_that_has_no_device_are_the_work) {
  const std::string step = complete_event("user_annotation", "ProfilerStep#3", "0", "100") + "," +
                           complete_event("cpu_op", "aten::mm", "10", "80");
  const test::Analysed nothing_said(step);
  const test::Analysed no_device(step, R"("deviceProperties":[],)");

  EXPECT_FALSE(nothing_said.all.verdict) << "the device may not have been traced";
  EXPECT_EQ(verdict_needs(nothing_said.all.ranks).substr(0, 11), "device work");
  ASSERT_TRUE(no_device.all.verdict);
  EXPECT_EQ(no_device.all.verdict->word, "compute");
  EXPECT_DOUBLE_EQ(no_device.all.verdict->compute, 0.8);
}

TEST(VerdictTest, graphs_around_the_known_work_of_a_recording_without_steps_hide_it) {
  const std::string kernel = complete_event("kernel", "gemm", "500", "100");
  const test::Analysed known(kernel);
  const test::Analysed hides(kernel + "," + complete_event("gpu_graph", "graph", "0", "400"));

  EXPECT_EQ(hides.all.ranks.front().activity.window, known.all.ranks.front().activity.window);
  EXPECT_TRUE(known.all.verdict);
  EXPECT_FALSE(hides.all.verdict);
}

// The loader stacks and decodes on the thread that trains; it may also do so on one of its own,
// beside the model.
TEST(VerdictTest, operators_that_read_input_are_waiting_for_it) {
  const std::string loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  for (const std::string& name : {std::string("data"), loader}) {
    const test::Analysed reads(complete_event("user_annotation", "ProfilerStep#3", "0", "100") +
                                   "," + complete_event("user_annotation", name, "0", "70") + "," +
                                   complete_event("cpu_op", "aten::stack", "0", "65") + "," +
                                   complete_event("cpu_op", "aten::mm", "70", "30"),
                               R"("deviceProperties":[],)");

    ASSERT_TRUE(reads.all.verdict) << name;
    EXPECT_EQ(reads.all.verdict->word, "io") << name;
    EXPECT_DOUBLE_EQ(reads.all.verdict->io, 0.7) << name;
    EXPECT_DOUBLE_EQ(reads.all.verdict->compute, 0.3) << name;
  }
}

TEST(VerdictTest, a_loader_thread_beside_the_model_takes_none_of_its_time) {
  std::string loader = complete_event("user_annotation", "data", "0", "70");
  loader.replace(loader.find("\"tid\":1"), 7, "\"tid\":99");
  const test::Analysed reads(complete_event("user_annotation", "ProfilerStep#3", "0", "100") + "," +
                             complete_event("user_annotation", "forward", "0", "90") + "," +
                             loader);

  EXPECT_DOUBLE_EQ(reads.all.verdict.value().compute, 0.9);
}

// The second kernel's name is not in the table.
constexpr const char* kExport =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1,'gemm'),(2,'gelu'),(3,'');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT,deviceId INT,streamId INT,"
    "correlationId INT,globalPid INT,demangledName INT,shortName INT);"
    "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT);"
    "INSERT INTO NVTX_EVENTS VALUES (0,1000,59,'ProfilerStep#5',16777217);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0,500,0,7,1,16777216,1,1),"
    "(600,900,0,7,2,16777216,";

std::optional<statistics::Bound> verdict_of_export(const std::string& names_of_second,
                                                   std::string& needs) {
  const core::ScratchFolder scratch;
  test::make_database(scratch / "a.sqlite", kExport + names_of_second + ");");
  trace::TraceSet set = trace::load_traces(trace::find_traces({scratch.path()}), {.threads = 1});
  const Analysis all = analyse(set, 1);
  needs = verdict_needs(all.ranks);
  return all.verdict;
}

TEST(VerdictTest, a_kernel_without_a_name_may_communicate) {
  std::string needs;
  EXPECT_TRUE(verdict_of_export("1,1", needs).has_value());
  EXPECT_TRUE(verdict_of_export("1,99", needs).has_value()) << "its full name is known";
  EXPECT_TRUE(verdict_of_export("98,2", needs).has_value()) << "its short name is known";
  EXPECT_TRUE(verdict_of_export("2,3", needs).has_value()) << "the short one is empty";
  EXPECT_FALSE(verdict_of_export("98,99", needs).has_value());
  EXPECT_EQ(needs, "the names of all kernels: one without may communicate");
}

// A step of 1 ms whose device copies for 5 us, and replays a graph for so long.
std::string step_with_graph(int graph_us) {
  return complete_event("user_annotation", "ProfilerStep#3", "0", "1000") + "," +
         complete_event("gpu_memcpy", "Memcpy HtoD", "5", "5") + "," +
         complete_event("gpu_graph", "graph", "20", std::to_string(graph_us));
}

TEST(VerdictTest, what_graphs_hide_may_be_anything) {
  const test::Analysed replays(step_with_graph(900)), hardly(step_with_graph(9));

  EXPECT_FALSE(replays.all.verdict);
  EXPECT_NE(verdict_needs(replays.all.ranks).find("--cuda-graph-trace=node"), std::string::npos);
  EXPECT_FALSE(replays.all.utilisation.gpu_utilisation);
  ASSERT_TRUE(hardly.all.verdict) << "a hundredth of the step moves nothing";
  EXPECT_EQ(hardly.all.verdict->word, "cpu");
  EXPECT_EQ(hardly.all.utilisation.gpu_utilisation, 0);
}

// Ranges of the host are no computing of a host whose device is at work.
TEST(VerdictTest, graphs_alone_are_work_of_a_device) {
  const test::Analysed replays(complete_event("user_annotation", "ProfilerStep#3", "0", "100") +
                               "," + complete_event("user_annotation", "replay", "0", "90") + "," +
                               complete_event("user_annotation", "optimizer", "90", "5") + "," +
                               complete_event("gpu_graph", "graph", "10", "80"));

  EXPECT_EQ(replays.all.ranks.front().activity.where, Where::kDevice);
  EXPECT_FALSE(replays.all.verdict);
  EXPECT_EQ(replays.all.ranks.front().steps.front().budget.idle_ns, 100'000);
}

}  // namespace
}  // namespace sidestream::analysis
