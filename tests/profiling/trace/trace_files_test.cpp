// What the name of a file says.
#include "profiling/trace/trace_files.hpp"

#include <gtest/gtest.h>

#include "profiling/trace/time_windows.hpp"

namespace sidestream::trace {
namespace {

TEST(TraceFilesTest, rank_in_name) {
  EXPECT_EQ(rank_in_name("lora-r16-rank-12.json.gz"), 12);
  EXPECT_EQ(rank_in_name("node1_00003.12.pt.trace.json.gz"), 3);
  EXPECT_EQ(rank_in_name("r_4.sqlite"), 4);
  EXPECT_EQ(rank_in_name("node1_00003.pt.trace.json.gz"), 3);
  EXPECT_EQ(rank_in_name("host_12345.1700000000000.pt.trace.json"), std::nullopt) << "a process";
  EXPECT_EQ(rank_in_name("trace.json"), std::nullopt);
}

TEST(TraceFilesTest, numbers_in_names_make_no_rank_and_no_less_of_a_trace) {
  for (const char* name : {"step_00010.json", "step_00010.json.gz", "shard_00003.json"}) {
    EXPECT_EQ(rank_in_name(name), std::nullopt) << name;
    EXPECT_TRUE(is_trace_name(name)) << name;
  }
  EXPECT_FALSE(is_trace_name("metrics.json"));
}

TEST(TraceFilesTest, worker_in_name) {
  EXPECT_EQ(worker_in_name("host_12345.1700000000000.pt.trace.json"), "host_12345");
  EXPECT_EQ(worker_in_name("step_00010.json"), worker_in_name("step_00020.json"));
  EXPECT_EQ(worker_in_name("a-step7.pt.trace.json.gz"),
            worker_in_name("a-step12.pt.trace.json.gz"));
  EXPECT_NE(worker_in_name("a_step_1.json"), worker_in_name("b_step_1.json"));
  EXPECT_NE(worker_in_name("step_1_a.json"), worker_in_name("step_1_b.json"));
  EXPECT_EQ(worker_in_name("footstep1.json"), "");
  EXPECT_EQ(worker_in_name("trace0.json"), "");
}

}  // namespace
}  // namespace sidestream::trace
