// Which steps the longest operations are of.
#include "profiling/analysis/top_operations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/profiling/analysed.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

// Two steps of 100 us, each with 80 us of forward.
const std::string kSteps = complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
                           complete_event("user_annotation", "forward", "0", "80") + "," +
                           complete_event("user_annotation", "ProfilerStep#3", "100", "100") + "," +
                           complete_event("user_annotation", "forward", "100", "80");

const Operation& named(const std::vector<Operation>& operations, const std::string& name) {
  return *std::find_if(operations.begin(), operations.end(),
                       [&](const Operation& one) { return one.name == name; });
}

TEST(TopOperationsTest, a_recording_around_profiled_steps_counts_these_only) {
  const test::Analysed run(kSteps + "," + complete_event("cpu_op", "aten::mm", "110", "50"));

  EXPECT_EQ(run.all.profiled_steps, 1);
  ASSERT_EQ(run.all.operations.size(), 2u);
  EXPECT_EQ(run.all.operations.front().name, "aten::mm");
  EXPECT_EQ(named(run.all.operations, "forward").calls, 1);
  EXPECT_EQ(named(run.all.operations, "forward").total_ns, 30'000);
}

TEST(TopOperationsTest, a_recording_without_operators_counts_every_step) {
  const test::Analysed run(kSteps);

  EXPECT_FALSE(run.all.profiled_steps.has_value());
  EXPECT_EQ(named(run.all.operations, "forward").total_ns, 160'000);
}

}  // namespace
}  // namespace sidestream::analysis
