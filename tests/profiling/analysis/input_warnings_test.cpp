// What a report says of traces that are not what they seem.
#include "profiling/analysis/input_warnings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/database.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using ::testing::Contains, ::testing::HasSubstr, ::testing::Not;

class InputWarningsTest : public ::testing::Test {
 protected:
  void write(int rank, const std::string& events, const std::string& more = "") {
    std::string text = test::trace_of(events, rank, 2);
    text.insert(1, more);
    test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"), text);
  }
  std::vector<std::string> warnings() {
    trace::TraceSet set = trace::load_traces(trace::find_traces({scratch_.path()}), {.threads = 1});
    analyse(set, 1);
    return set.warnings;
  }

  core::ScratchFolder scratch_;
};

// One step of so many microseconds, and a kernel in it.
std::string step(const std::string& length) {
  return test::complete_event("user_annotation", "ProfilerStep#3", "0", length) + "," +
         test::complete_event("kernel", "gemm", "0", length);
}

TEST_F(InputWarningsTest, steps_of_no_length_may_be_in_another_unit) {
  write(0, step("0.9"));
  EXPECT_THAT(warnings(), Contains(HasSubstr("in another unit than microseconds?")));
  write(0, step("1.1"));
  EXPECT_THAT(warnings(), Not(Contains(HasSubstr("another unit"))));
}

TEST_F(InputWarningsTest, traces_of_our_trainer_and_of_another_program_are_of_two_jobs) {
  const std::string ours = R"("sidestream":{"tokens_per_step":128},)";
  write(0, step("1000"), ours);
  write(1, step("1000"), ours);
  EXPECT_THAT(warnings(), Not(Contains(HasSubstr("another program"))));
  write(1, step("1000"));
  EXPECT_THAT(warnings(), Contains(HasSubstr("others of another program")));
}

TEST_F(InputWarningsTest, an_export_without_steps_is_told_to_have_ranges) {
  test::make_database(
      scratch_ / "a.sqlite",
      "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES (1,'gemm');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT,deviceId INT,streamId INT,"
      "correlationId INT,globalPid INT,shortName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0,500,0,7,1,16777216,1);"
      "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT);"
      "INSERT INTO NVTX_EVENTS VALUES (0,1000,59,'step 0',16777217);");
  EXPECT_THAT(warnings(), Contains(HasSubstr("Put an NVTX range of that name")));
}

}  // namespace
}  // namespace sidestream::analysis
