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

}  // namespace
}  // namespace sidestream::analysis
