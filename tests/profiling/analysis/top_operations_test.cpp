// Which steps the longest operations are of.
#include "profiling/analysis/top_operations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "profiling/report/summary.hpp"
#include "profiling/report/text_report.hpp"
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

TEST(TopOperationsTest, work_passed_on_is_not_that_of_making_room) {
  const auto product_around = [](const std::string& inner) {
    return test::Analysed(
        complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
        complete_event("user_annotation", "forward", "0", "100") + "," +
        complete_event("cpu_op", "aten::mm", "0", "100",
                       R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"])") +
        "," + complete_event("cpu_op", inner, "10", "80"));
  };
  const test::Analysed kernel = product_around("aten::mkldnn_mm"),
                       room = product_around("aten::empty");

  EXPECT_EQ(named(kernel.all.operations, "aten::mkldnn_mm").flops.total(), 2.0 * 64 * 32 * 16);
  EXPECT_EQ(named(room.all.operations, "aten::empty").flops.total(), std::nullopt);
}

// The profiler makes its steps longer than those around them.
TEST(TopOperationsTest, no_share_of_a_long_profiled_step_is_above_its_whole) {
  const test::Analysed run(complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
                           complete_event("user_annotation", "forward", "0", "80") + "," +
                           complete_event("user_annotation", "ProfilerStep#3", "100", "500") + "," +
                           complete_event("cpu_op", "aten::mm", "110", "450"));

  EXPECT_DOUBLE_EQ(report::stepped_ns(run.all), 500'000);
}

TEST(TopOperationsTest, a_recording_without_operators_counts_every_step) {
  const test::Analysed run(kSteps);

  EXPECT_FALSE(run.all.profiled_steps.has_value());
  EXPECT_EQ(named(run.all.operations, "forward").total_ns, 160'000);
}

TEST(TopOperationsTest, shares_are_of_the_steps_that_operations_are_counted_over) {
  const test::Analysed profiled(kSteps + "," + complete_event("cpu_op", "aten::mm", "110", "50"));
  const test::Analysed recorded(kSteps);
  const auto share = [](const test::Analysed& run, const std::string& name) {
    return report::step_share(named(run.all.operations, name), report::stepped_ns(run.all));
  };

  EXPECT_DOUBLE_EQ(share(profiled, "aten::mm").value(), 0.5);
  EXPECT_DOUBLE_EQ(share(recorded, "forward").value(), 0.8);  // and all of what was recorded
  EXPECT_FALSE(report::step_share(named(recorded.all.operations, "forward"), 0));
  EXPECT_NE(report::text_report(recorded.all, {}, {.width_columns = 100}).find("of step"),
            std::string::npos);
}

}  // namespace
}  // namespace sidestream::analysis
