// Rules about the machine, the host's operators, shapes and kinds of collectives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tests/profiling/advice/facts_maker.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

// Two ranks on four processors, each of which runs on 1.4 and is ready for 0.6 more.
Facts beside_other_programs() {
  Facts facts = step_of(100);
  facts.on_device = false;
  facts.collectives = CollectiveFacts{};
  facts.environment = {{"cores", "4"}, {"world_size", "2"}, {"nodes", "1"}};
  facts.system.process_cores = 1.4;
  facts.system.process_cores_short = 0.6;
  facts.system.machine_cpu = 1;
  facts.step->compute_ns = 40e6;
  facts.step->overlapped_comm_ns = 20e6;
  facts.step->exposed_comm_ns = 40e6;
  return facts;
}

TEST(MachineRulesTest, other_programs_on_the_processors_are_named_before_what_follows_from_them) {
  Facts facts = beside_other_programs();
  facts.collectives = CollectiveFacts{};
  facts.straggler = late_rank(0, 40'000'000, "forward");

  const Advice advice = advise(facts);

  ASSERT_EQ(advice.findings.size(), 2u);
  EXPECT_STREQ(advice.findings[0].rule->id, "foreign-load");
  EXPECT_NEAR(*advice.findings[0].what.bound, 0.3, 1e-9);
  EXPECT_NEAR(advice.findings[0].what.evidence[0].value, 4 - 2 * 1.4, 1e-9);
  EXPECT_STREQ(advice.findings[1].rule->id, "straggler") << "although its bound is larger";
  const std::string text = advice_text(advice, {.width_columns = 200});
  EXPECT_THAT(text, HasSubstr("at most 30.0 %; first, for what else is found may follow from it"));
  EXPECT_THAT(text, Not(HasSubstr("at most 40.0 %; first")));
  nlohmann::ordered_json report = {{"not_measured", nlohmann::json::array()}};
  add_to_report(advice, report);
  EXPECT_EQ(report["advice"][0]["comes_first"], true);
  EXPECT_EQ(report["advice"][1]["comes_first"], false);
  EXPECT_EQ(first_of_run(advice.findings), &advice.findings[1]);
  EXPECT_EQ(first_of_run({advice.findings[0]}), nullptr);
}

TEST(MachineRulesTest, communication_beside_other_programs_is_not_bound_by_the_link) {
  Facts facts = beside_other_programs();
  EXPECT_FALSE(speaks(advise(facts), "link-bound"));
  facts.on_device = true;  // it does not communicate on the processors
  EXPECT_TRUE(speaks(advise(facts), "link-bound"));
  facts.on_device = false;
  facts.system.process_cores_short = 0;
  EXPECT_TRUE(speaks(advise(facts), "link-bound"));
}

TEST(MachineRulesTest, a_faster_link_takes_nothing_from_the_time_that_ranks_wait_for_each_other) {
  Facts facts = beside_other_programs();
  facts.on_device = true;
  facts.collectives = CollectiveFacts{.transfer_ns = 0};
  EXPECT_FALSE(speaks(advise(facts), "link-bound"));
  facts.collectives->transfer_ns = 20e6;

  const Advice advice = advise(facts);

  const auto link =
      std::find_if(advice.findings.begin(), advice.findings.end(),
                   [](const auto& one) { return std::string_view(one.rule->id) == "link-bound"; });
  ASSERT_NE(link, advice.findings.end());
  EXPECT_DOUBLE_EQ(*link->what.bound, 0.2);
}

TEST(MachineRulesTest, foreign_load_needs_samples_and_is_not_what_ranks_do_to_each_other) {
  Facts facts = beside_other_programs();
  facts.system.machine_cpu = 0.75;  // 0.2 of 4 processors are somebody else's
  EXPECT_FALSE(speaks(advise(facts), "foreign-load"));
  facts.system.machine_cpu = 1;
  facts.system.process_cores_short = 0.05;
  EXPECT_FALSE(speaks(advise(facts), "foreign-load"));
  facts.environment.clear();
  EXPECT_THAT(needs_of(advise(facts), "foreign-load"), HasSubstr("run.json"));
  facts.system = {};
  EXPECT_THAT(needs_of(advise(facts), "foreign-load"), HasSubstr("--sample-hz"));
}

TEST(MachineRulesTest, ranks_on_several_numa_nodes) {
  Facts facts = step_of(100);
  EXPECT_THAT(needs_of(advise(facts), "numa"), HasSubstr("run.json"));
  facts.environment = {{"numa_nodes", "2"}, {"numa_nodes_of_rank", "2"}};
  ASSERT_TRUE(speaks(advise(facts), "numa"));
  EXPECT_FALSE(advise(facts).findings.front().what.bound) << "no table of distances";
  facts.environment["numa_farthest"] = "20";
  facts.on_device = false;
  facts.step->compute_ns = 80e6;
  EXPECT_NEAR(*advise(facts).findings.front().what.bound, 0.8 * (1 - 10 / 20.0), 1e-9);
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
  facts.syncs = SyncFacts{};
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
  facts.step->exposed_comm_ns = 10e6;
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
