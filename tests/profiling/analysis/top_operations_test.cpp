// Which steps the longest operations are of.
#include "profiling/analysis/top_operations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "profiling/report/json_report.hpp"
#include "profiling/report/summary.hpp"
#include "profiling/report/text_report.hpp"
#include "tests/profiling/analysed.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

// Two steps of 100 us, each with 80 us of forward.
const std::string kTwoSteps = complete_event("user_annotation", "ProfilerStep#2", "0", "100") +
                              "," + complete_event("user_annotation", "forward", "0", "80") + "," +
                              complete_event("user_annotation", "ProfilerStep#3", "100", "100") +
                              "," + complete_event("user_annotation", "forward", "100", "80");

const Operation& named(const std::vector<Operation>& operations, const std::string& name) {
  return *std::find_if(operations.begin(), operations.end(),
                       [&](const Operation& one) { return one.name == name; });
}

TEST(TopOperationsTest, a_recording_around_profiled_steps_counts_these_only) {
  const test::Analysed run(kTwoSteps + "," + complete_event("cpu_op", "aten::mm", "110", "50"));

  EXPECT_TRUE(run.all.operation_steps.profiled_only);
  EXPECT_EQ(run.all.operation_steps.steps, 1);
  ASSERT_EQ(run.all.operations.size(), 2u);
  EXPECT_EQ(run.all.operations.front().name, "aten::mm");
  EXPECT_EQ(named(run.all.operations, "forward").calls, 1);
  EXPECT_EQ(named(run.all.operations, "forward").total_ns, 30'000);
}

TEST(TopOperationsTest, what_lies_between_steps_is_no_time_of_theirs) {
  const test::Analysed recorded(kTwoSteps + "," +
                                complete_event("user_annotation", "eval", "200", "900"));
  ASSERT_EQ(recorded.all.operations.size(), 1u);
  EXPECT_EQ(recorded.all.operations.front().name, "forward");

  const test::Analysed profiled(kTwoSteps + "," + complete_event("cpu_op", "aten::mm", "10", "50") +
                                "," + complete_event("cpu_op", "aten::mm", "110", "50") + "," +
                                complete_event("user_annotation", "eval", "200", "900") + "," +
                                complete_event("cpu_op", "aten::mm", "300", "700"));
  EXPECT_EQ(named(profiled.all.operations, "aten::mm").total_ns, 100'000);
  EXPECT_EQ(named(profiled.all.operations, "aten::mm").calls, 2);
}

// A device is behind its host.
TEST(TopOperationsTest, work_of_a_device_belongs_to_the_step_that_launched_it) {
  const auto launched = [](const std::string& name, int number, int called, int begun) {
    const std::string correlation = R"("correlation":)" + std::to_string(number);
    return "," +
           complete_event("cuda_runtime", "cudaLaunchKernel", std::to_string(called), "5",
                          correlation) +
           "," +
           complete_event("kernel", name, std::to_string(begun), "30",
                          R"("device":0,"stream":7,)" + correlation);
  };
  const test::Analysed run(complete_event("user_annotation", "ProfilerStep#2", "0", "100") +
                           launched("of_the_step", 1, 10, 40) + launched("late", 2, 90, 120) +
                           launched("of_eval", 3, 150, 170));

  ASSERT_EQ(run.all.operations.size(), 2u);
  EXPECT_EQ(named(run.all.operations, "late").total_ns, 30'000);
  EXPECT_EQ(named(run.all.operations, "of_the_step").total_ns, 30'000);
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

// A fused operator counts its products, and calls aten::mm for them: they are done once, where the
// time is.
TEST(TopOperationsTest, work_of_a_fused_operator_is_that_of_what_it_calls) {
  const std::string fused_shapes =
      R"("Input Dims": [[64, 32], [32, 16], [16]], "Input type": ["float", "float", "float"])";
  const std::string product_shapes =
      R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"])";
  const std::string step = complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
                           complete_event("cpu_op", "sidestream::linear", "0", "100", fused_shapes);
  const test::Analysed calling(step + "," +
                               complete_event("cpu_op", "aten::mm", "10", "80", product_shapes)),
      alone(step);
  const double flops = 2.0 * 64 * 32 * 16;

  const Operation& bias = named(calling.all.operations, "sidestream::linear");
  EXPECT_EQ(bias.flops.total(), 64 * 16);
  EXPECT_EQ(bias.bytes.total(), 4 * 64 * 16);
  EXPECT_EQ(bias.flops.time_ns, 20'000);
  EXPECT_EQ(named(calling.all.operations, "aten::mm").flops.total(), flops);
  EXPECT_EQ(named(calling.all.operations, "aten::mm").flops.time_ns, 80'000);
  EXPECT_EQ(named(alone.all.operations, "sidestream::linear").flops.total(), flops);
  EXPECT_EQ(named(alone.all.operations, "sidestream::linear").flops.time_ns, 100'000);
}

// What calls inside left to do is done in the time that they left.
TEST(TopOperationsTest, what_a_fused_operator_does_itself_is_done_in_its_own_time) {
  const test::Analysed run(
      complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
      complete_event(
          "cpu_op", "sidestream::mlp", "0", "100",
          R"("Input Dims": [[64, 32], [32, 16], [16, 32]], "Input type": ["float", "float", "float"])") +
      "," +
      complete_event("cpu_op", "aten::mm", "10", "70",
                     R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"])"));

  const Operation& fused = named(run.all.operations, "sidestream::mlp");
  EXPECT_EQ(fused.flops.total(), 2.0 * 64 * 16 * 32);
  EXPECT_EQ(fused.flops.time_ns, 30'000);
}

// 64 rows, 16 hidden elements each. Forward adds a bias and takes GELU (5) of what the first
// product left, writes it twice, adds the other bias to 32 columns and writes them.
TEST(TopOperationsTest, beside_its_products_an_mlp_does_gelu_and_biases) {
  const test::Analysed run(
      complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
      complete_event(
          "cpu_op", "sidestream::mlp", "0", "100",
          R"("Input Dims": [[64, 32], [32, 16], [16, 32]], "Input type": ["float", "float", "float"])") +
      "," +
      complete_event("cpu_op", "aten::mm", "10", "30",
                     R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"])") +
      "," +
      complete_event("cpu_op", "aten::mm", "50", "30",
                     R"("Input Dims": [[64, 16], [16, 32]], "Input type": ["float", "float"])"));

  const Operation& fused = named(run.all.operations, "sidestream::mlp");
  EXPECT_EQ(fused.flops.total(), 64 * 16 * (1 + 5) + 64 * 32);
  EXPECT_EQ(fused.bytes.total(), 4 * (2 * 64 * 16 + 64 * 32));
  EXPECT_EQ(fused.flops.time_ns, 40'000);
  EXPECT_EQ(fused.bytes.time_ns, 40'000);
}

TEST(TopOperationsTest, bytes_without_a_result_are_marked_in_the_report) {
  const auto reported = [](const std::string& name) {
    const test::Analysed run(
        complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
        complete_event("cpu_op", name, "0", "100",
                       R"("Input Dims": [[64, 32]], "Input type": ["float"])"));
    return report::top_operations_json(run.all).at(0).at("bytes_at_least").get<bool>();
  };
  EXPECT_TRUE(reported("aten::cumsum"));
  EXPECT_FALSE(reported("aten::cos"));
}

// What a rank hands over, as the profiler writes it on the kernel: elements of a type.
TEST(TopOperationsTest, bytes_of_a_collective_are_those_that_its_kernel_names) {
  const auto all_reduce = [](const std::string& start, const std::string& elements) {
    return complete_event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", start, "20",
                          R"("stream":9,"Collective name":"allreduce","In msg nelems":)" +
                              elements + R"(,"Out msg nelems":)" + elements +
                              R"(,"Group size":2,"dtype":"BFloat16")");
  };
  const test::Analysed run(complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
                           all_reduce("10", "1000") + "," + all_reduce("50", "500"));

  const Operation& nccl = named(run.all.operations, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
  EXPECT_EQ(nccl.calls, 2);
  EXPECT_EQ(nccl.bytes.total(), 2.0 * (1000 + 500));
  EXPECT_FALSE(nccl.flops.total());
}

// The same of a host rank, whose ranges name the payload.
TEST(TopOperationsTest, bytes_of_a_collective_on_the_host_are_its_payload) {
  const test::Analysed run(complete_event("user_annotation", "ProfilerStep#2", "0", "100") + "," +
                           complete_event("user_annotation", "forward", "0", "40") + "," +
                           complete_event("user_annotation", "allreduce", "50", "30",
                                          R"("bucket":0,"payload bytes":700,"sequence":1)"));

  EXPECT_EQ(named(run.all.operations, "allreduce").bytes.total(), 700);
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
  const test::Analysed run(kTwoSteps);

  EXPECT_FALSE(run.all.operation_steps.profiled_only);
  EXPECT_EQ(named(run.all.operations, "forward").total_ns, 160'000);
}

TEST(TopOperationsTest, shares_are_of_the_steps_that_operations_are_counted_over) {
  const test::Analysed profiled(kTwoSteps + "," +
                                complete_event("cpu_op", "aten::mm", "110", "50"));
  const test::Analysed recorded(kTwoSteps);
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
