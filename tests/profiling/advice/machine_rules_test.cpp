// Rules about the machine, the host's operators, shapes and kinds of collectives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiling/advice/facts_maker.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;

TEST(MachineRulesTest, a_saturated_disk_explains_waiting_for_data) {
  Facts facts = step_of(100);
  facts.config = {{"loader-workers", "2"}};
  facts.step->idle_data_ns = 20e6;
  EXPECT_THAT(needs_of(advise(facts), "storage-saturated"), HasSubstr("--sample-hz"));
  facts.system.disk_busy = 0.97;
  facts.system.disk = "sda";
  const Advice advice = advise(facts);
  ASSERT_TRUE(speaks(advice, "storage-saturated"));
  EXPECT_FALSE(speaks(advice, "input-slow"));  // the same waiting
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.2, 1e-9);
  facts.system.disk_busy = 0.4;
  EXPECT_FALSE(speaks(advise(facts), "storage-saturated"));
  EXPECT_TRUE(speaks(advise(facts), "input-slow"));
}

TEST(MachineRulesTest, ranks_on_several_numa_nodes) {
  Facts facts = step_of(100);
  EXPECT_THAT(needs_of(advise(facts), "numa"), HasSubstr("run.json"));
  facts.environment = {{"numa_nodes", "2"}, {"numa_nodes_of_rank", "2"}};
  EXPECT_TRUE(speaks(advise(facts), "numa"));
  facts.environment["numa_nodes_of_rank"] = "1";
  EXPECT_FALSE(speaks(advise(facts), "numa"));
  EXPECT_EQ(needs_of(advise(facts), "numa"), "");
}

TEST(MachineRulesTest, libraries_older_than_the_device_or_newer_than_the_driver) {
  Facts facts = step_of(100);
  facts.compute_capability = 90;
  EXPECT_THAT(needs_of(advise(facts), "old-libraries"), HasSubstr("versions"));
  facts.cuda_runtime = 12040;
  facts.cuda_driver = 12090;
  EXPECT_FALSE(speaks(advise(facts), "old-libraries"));
  facts.cuda_driver = 12020;
  ASSERT_TRUE(speaks(advise(facts), "old-libraries"));
  EXPECT_THAT(advice_text(advise(facts), {.width_columns = 100}), HasSubstr("12.4"));
  facts.cuda_driver = 12090;
  facts.compute_capability = 100;  // first known to 12.8
  EXPECT_THAT(advise(facts).findings.front().what.fix, HasSubstr("knows this device"));
}

TEST(MachineRulesTest, heavy_operators_of_the_host_leave_the_device_idle) {
  Facts facts = step_of(100);
  EXPECT_THAT(needs_of(advise(facts), "heavy-host-operators"), HasSubstr("operators"));
  facts.kernels = KernelFacts{.per_step = 10};
  facts.step->idle_host_ns = 20e6;
  facts.heavy_operators = HeavyOperatorFacts{};
  EXPECT_FALSE(speaks(advise(facts), "heavy-host-operators"));
  EXPECT_TRUE(speaks(advise(facts), "launch-bound"));
  facts.heavy_operators = {.time_ns = 60e6, .longest = "aten::sort", .longest_ns = 60e6};
  const Advice advice = advise(facts);
  ASSERT_TRUE(speaks(advice, "heavy-host-operators"));
  EXPECT_FALSE(speaks(advice, "launch-bound"));  // the same idle time
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.2, 1e-9);
}

TEST(MachineRulesTest, weight_decay_beside_a_fused_update) {
  Facts facts = step_of(100);
  EXPECT_THAT(needs_of(advise(facts), "separate-weight-decay"), HasSubstr("optimizer"));
  facts.optimizer = OptimizerFacts{.launches = 8, .time_ns = 9e6, .passes_ns = 4e6};
  EXPECT_FALSE(speaks(advise(facts), "separate-weight-decay"));  // nothing is fused
  facts.optimizer->fused_update = true;
  const Advice advice = advise(facts);
  ASSERT_TRUE(speaks(advice, "separate-weight-decay"));
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.04, 1e-9);
}

TEST(MachineRulesTest, all_reduce_before_a_sharded_update) {
  Facts facts = step_of(100);
  EXPECT_THAT(needs_of(advise(facts), "collective-choice"), HasSubstr("collectives"));
  facts.collectives = CollectiveFacts{
      .bytes = 2e8, .all_reduce_bytes = 1e8, .all_reduce_exposed_ns = 10e6, .gathered_bytes = 1e8};
  const Advice advice = advise(facts);
  ASSERT_TRUE(speaks(advice, "collective-choice"));
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.05, 1e-9);
  facts.collectives->gathered_bytes = 0;  // nothing is sharded
  EXPECT_FALSE(speaks(advise(facts), "collective-choice"));
  facts.collectives->gathered_bytes = 1e8;
  facts.collectives->reduce_scatter_bytes = 1e8;
  EXPECT_FALSE(speaks(advise(facts), "collective-choice"));
}

TEST(MachineRulesTest, lines_of_128_bytes_count_from_a100_on) {
  Facts facts = step_of(100);
  EXPECT_THAT(needs_of(advise(facts), "shapes-64"), HasSubstr("--profile-shapes"));
  facts.products = ProductFacts{.flops = 1e12, .off_line_flops = 5e11};
  facts.kernels = KernelFacts{.matrix_ns = 60e6};
  EXPECT_THAT(needs_of(advise(facts), "shapes-64"), HasSubstr("device properties"));
  facts.compute_capability = 70;
  EXPECT_FALSE(speaks(advise(facts), "shapes-64"));
  facts.compute_capability = 80;
  EXPECT_TRUE(speaks(advise(facts), "shapes-64"));
}

}  // namespace
}  // namespace sidestream::advice
