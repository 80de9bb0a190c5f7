#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "profiling/advice/advice.hpp"
#include "profiling/advice/event_facts.hpp"
#include "tests/profiling/advice/facts_maker.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;

TEST(RulesTest, every_rule_is_whole_and_named_once) {
  std::set<std::string> names;
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(names.insert(rule.id).second) << rule.id;
    for (const char* text :
         {rule.title, rule.looks_at, rule.source, rule.fix, rule.false_if, rule.check}) {
      ASSERT_NE(text, nullptr) << rule.id;
      EXPECT_FALSE(std::string(text).empty()) << rule.id;
    }
  }
  EXPECT_GE(names.size(), 20u);
}

// Every rank has its own figures; those that stand there are of the one that has it worst.
TEST(RulesTest, a_finding_of_several_ranks_says_whose_figures_it_shows) {
  Facts facts = step_of(100);
  facts.config["loader-workers"] = "2";
  facts.step->idle_data_ns = 12e6;
  for (const int rank : {0, 1, 2}) {
    facts.step_of_rank[rank] = *facts.step;
    facts.step_of_rank[rank].idle_data_ns = rank == 1 ? 20e6 : 8e6;
  }

  const Advice advice = advise(facts);

  ASSERT_EQ(advice.findings.size(), 1u);
  EXPECT_EQ(advice.findings[0].shown, 1);
  EXPECT_NEAR(*advice.findings[0].what.bound, 0.2, 1e-9);
  EXPECT_THAT(advice_text(advice, {.width_columns = 100}),
              HasSubstr("(3 ranks; figures of rank 1, the worst)"));
  for (auto& [rank, step] : facts.step_of_rank) step.idle_data_ns = 12e6;
  EXPECT_THAT(advice_text(advise(facts), {.width_columns = 100}), HasSubstr("(3 ranks): at most"));
}

// Kernels, copies and collectives are means over all ranks: the rank with the shortest step would
// look as if it had most of them.
TEST(RulesTest, figures_of_all_ranks_are_no_ranks_own) {
  Facts facts = step_of(100);
  facts.kernels =
      KernelFacts{.per_step = 900, .low_occupancy_ns = 20e6, .short_ns = 30e6, .convolution_ns = 1};
  facts.step_of_rank = {{0, *facts.step}, {1, *facts.step}};
  facts.step_of_rank[1].window_ns = 50e6;

  const Advice advice = advise(facts);

  for (const char* rule : {"low-occupancy", "small-kernels"}) ASSERT_TRUE(speaks(advice, rule));
  for (const Finding& one : advice.findings) {
    EXPECT_TRUE(one.ranks.empty()) << one.rule->id;
    EXPECT_FALSE(one.shown) << one.rule->id;
    EXPECT_EQ(one.count, 1) << one.rule->id;
  }
}

TEST(RulesTest, thresholds_hold_on_both_sides) {
  Facts facts = step_of(100);
  facts.config["loader-workers"] = "2";
  facts.step->idle_data_ns = 4.9e6;
  EXPECT_FALSE(speaks(advise(facts), "input-slow"));
  facts.step->idle_data_ns = 5.1e6;
  const Advice advice = advise(facts);
  ASSERT_TRUE(speaks(advice, "input-slow"));
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.051, 1e-9);
}

TEST(RulesTest, fp32_on_the_processor_is_bounded_by_the_measured_ceilings) {
  Facts facts = step_of(100);
  facts.on_device = false;
  facts.products = ProductFacts{.flops = 1e9, .fp32_flops = 1e9, .host_ns = 60e6};
  EXPECT_THAT(needs_of(advise(facts), "no-amp"), HasSubstr("bench ceilings"));
  facts.ceilings = Ceilings{.flops_per_s = {{"fp32", 1e11}, {"bf16", 4e11}}};

  const Advice advice = advise(facts);

  ASSERT_TRUE(speaks(advice, "no-amp"));
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.6 * 0.75, 1e-9);
  facts.step->compute_ns = 80e6;  // 20 ms of attention and element-wise operators
  facts.step->exposed_comm_ns = 8e6;
  EXPECT_NEAR(*advise(facts).findings.front().what.bound, 0.6 * 0.75 + 0.1 + 0.08 * 0.75, 1e-9);
}

TEST(RulesTest, fp32_on_a_device_is_bounded_by_its_roofs_or_by_all_of_the_products) {
  Facts facts = step_of(100);
  facts.kernels = KernelFacts{.matrix_ns = 60e6};
  facts.compute_capability = 90;
  facts.tensor_core_share = 0;
  const auto bound = [&] {
    for (const Finding& one : advise(facts).findings)
      if (one.rule->id == std::string("no-amp")) return *one.what.bound;
    return 0.0;
  };
  EXPECT_NEAR(bound(), 0.6, 1e-9);
  facts.ceilings = Ceilings{.flops_per_s = {{"fp32", 60e12}, {"bf16", 900e12}}};
  EXPECT_NEAR(bound(), 0.6 * (1 - 1 / 15.0), 1e-9);
}

TEST(RulesTest, one_step_does_not_tell_a_slow_rank_from_chance) {
  Facts facts = step_of(100);
  facts.collectives = CollectiveFacts{};
  facts.straggler = late_rank(1, 40'000'000, "forward");
  EXPECT_TRUE(speaks(advise(facts), "straggler"));
  facts.straggler->cost_low_ns.reset();
  EXPECT_THAT(needs_of(advise(facts), "straggler"), HasSubstr("two steps or more"));
}

TEST(RulesTest, the_fix_for_a_straggler_fits_its_phase) {
  const auto fix_for = [](const std::string& phase) {
    Facts facts = step_of(100);
    facts.collectives = CollectiveFacts{};
    facts.straggler = late_rank(1, 20'000'000, phase);
    return advise(facts).findings.front().what.fix;
  };
  EXPECT_THAT(fix_for("allreduce"), HasSubstr("look at its link"));
  EXPECT_THAT(fix_for("allreduce"), ::testing::Not(HasSubstr("batch-size")));
  EXPECT_THAT(fix_for("forward"), HasSubstr("--batch-size-per-rank"));
  EXPECT_THAT(fix_for("data"), HasSubstr("--loader-workers"));
  EXPECT_THAT(fix_for(statistics::kComputing), HasSubstr("--batch-size-per-rank"));
  EXPECT_THAT(fix_for(statistics::kOtherWork), HasSubstr("put ranges around"));
}

TEST(RulesTest, waiting_for_the_device_is_said_by_one_rule_only) {
  Facts facts = step_of(100);
  facts.syncs = SyncFacts{.calls = 4};
  facts.step->idle_sync_ns = 2e6;
  EXPECT_FALSE(speaks(advise(facts), "synchronisation"));
  facts.step->idle_sync_ns = 10e6;
  EXPECT_TRUE(speaks(advise(facts), "synchronisation"));
  facts.config["log-every"] = "1";
  EXPECT_TRUE(speaks(advise(facts), "logging-each-step"));
  EXPECT_FALSE(speaks(advise(facts), "synchronisation"));
  facts.syncs->item_calls = 3;
  EXPECT_TRUE(speaks(advise(facts), "logging-each-step"));
  EXPECT_FALSE(speaks(advise(facts), "item-each-step"));
  facts.config.clear();
  EXPECT_TRUE(speaks(advise(facts), "item-each-step"));
  EXPECT_FALSE(speaks(advise(facts), "synchronisation"));
}

TEST(RulesTest, kernels_too_small_layouts_and_convolutions) {
  Facts facts = step_of(100);
  facts.kernels = KernelFacts{.per_step = 900, .short_ns = 12e6, .short_per_step = 800};
  EXPECT_THAT(needs_of(advise(facts), "convolution-choice"), HasSubstr("convolutions in"));
  facts.step->idle_host_ns = 20e6;  // between such kernels
  EXPECT_NEAR(bound_of(advise(facts), "small-kernels"), 0.32, 1e-9);
  facts.kernels = KernelFacts{.per_step = 9, .layout_ns = 5e6, .convolution_ns = 40e6};
  for (const char* rule : {"channels-first", "convolution-choice"})
    EXPECT_TRUE(speaks(advise(facts), rule)) << rule;
}

TEST(RulesTest, products_without_a_known_kernel_are_not_measured) {
  Facts facts = step_of(100);
  facts.compute_capability = 90;
  facts.tensor_core_share = 0.5;
  facts.products = ProductFacts{.flops = 1e9, .unaligned_flops = 1e9};
  facts.kernels = KernelFacts{.per_step = 9};
  const Advice advice = advise(facts);
  for (const char* rule : {"no-amp", "shapes", "shapes-64"})
    EXPECT_THAT(needs_of(advice, rule), HasSubstr("a name that is known")) << rule;
}

TEST(RulesTest, without_prefetch_that_is_the_finding) {
  Facts facts = step_of(100);
  facts.step->idle_data_ns = 20e6;
  facts.config = {{"loader-workers", "2"}, {"prefetch", "0"}};
  EXPECT_TRUE(speaks(advise(facts), "input-no-prefetch"));
  EXPECT_FALSE(speaks(advise(facts), "input-slow"));
  facts.config["prefetch"] = "4";
  EXPECT_FALSE(speaks(advise(facts), "input-no-prefetch"));
  EXPECT_TRUE(speaks(advise(facts), "input-slow"));
}

TEST(RulesTest, a_finding_names_its_place_and_silent_rules_are_listed) {
  Facts facts = step_of(100);
  facts.config["loader-workers"] = "2";
  facts.step->idle_data_ns = 20e6;
  facts.places.of_all[PlaceKind::kInput] = {.rank = 1, .start_ns = 5, .end_ns = 9};
  facts.places.first_step_ns = 2;
  const Advice advice = advise(facts);
  EXPECT_THAT(advice_text(advice, {.width_columns = 100}),
              HasSubstr("\n  where: rank 1, 3 ns to 7 ns after the first step began\n"));
  nlohmann::ordered_json report = {{"not_measured", nlohmann::json::array()}};
  add_to_report(advice, report);

  EXPECT_EQ(report["advice"][0]["start_ns"], 5);
  EXPECT_EQ(report["advice"][0]["end_ns"], 9);
  EXPECT_EQ(report["advice"][0]["place_rank"], 1);
  EXPECT_THAT(report["nothing_found"], ::testing::Contains("input-no-workers"));
  const std::string text = advice_text(advice, {.width_columns = 100});
  EXPECT_THAT(text, HasSubstr("false if: "));
  EXPECT_THAT(text, HasSubstr("check: "));
  EXPECT_THAT(text, HasSubstr("Looked and found nothing: "));
}

TEST(RulesTest, many_small_files_are_counted_in_the_data_folder) {
  Facts facts = step_of(100);
  facts.config = {{"loader-workers", "2"}};
  facts.step->idle_data_ns = 20e6;
  EXPECT_THAT(needs_of(advise(facts), "many-small-files"), HasSubstr("data folder"));
  facts.data = DataFacts{.files = 4000, .mean_bytes = 5000};
  EXPECT_TRUE(speaks(advise(facts), "many-small-files"));
  EXPECT_FALSE(speaks(advise(facts), "input-slow"));  // the same waiting
  facts.data->mean_bytes = 1e8;
  EXPECT_FALSE(speaks(advise(facts), "many-small-files"));
  EXPECT_TRUE(speaks(advise(facts), "input-slow"));
}

TEST(RulesTest, memory_near_the_edge_and_far_from_it) {
  Facts facts = step_of(100);
  facts.memory_share = 0.95;
  facts.gpu_utilisation = 0.3;
  facts.step->idle_ns = 70e6;
  const Advice full = advise(facts);
  ASSERT_TRUE(speaks(full, "memory-full"));
  EXPECT_NEAR(*full.findings.front().what.bound, 0.7, 1e-9);
  facts.memory_share = 0.2;
  EXPECT_TRUE(speaks(advise(facts), "memory-free"));
}

TEST(RulesTest, pageable_copies_up_to_64_kb_are_ignored) {
  Facts facts = step_of(100);
  facts.step->exposed_copies_ns = 8e6;
  facts.copies = CopyFacts{.pageable_ns = 7e6, .pageable_bytes = 60000};
  EXPECT_FALSE(speaks(advise(facts), "pageable-copies"));
  facts.copies->pageable_bytes = 1e7;
  const Advice advice = advise(facts);
  ASSERT_TRUE(speaks(advice, "pageable-copies"));
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.07, 1e-9);
}

TEST(MergedTest, a_finding_of_several_ranks_is_one_and_of_one_rank_names_it) {
  Facts facts = step_of(100);
  facts.config["loader-workers"] = "2";
  facts.step->idle_data_ns = 20e6;
  facts.step_of_rank = {{0, *facts.step}, {1, *facts.step}, {2, *facts.step}};
  facts.step_of_rank[1].idle_data_ns = 30e6;

  const Advice of_all = advise(facts);
  facts.step_of_rank[0].idle_data_ns = facts.step_of_rank[2].idle_data_ns = 0;
  const Advice of_one = advise(facts);

  ASSERT_EQ(of_all.findings.size(), 1u);
  EXPECT_EQ(of_all.findings[0].count, 3);
  EXPECT_EQ(of_all.findings[0].ranks, (std::vector<int>{1, 0, 2}));  // the worst one first
  EXPECT_EQ(of_all.findings[0].what.rank, -1);
  EXPECT_DOUBLE_EQ(*of_all.findings[0].what.bound, 0.3);
  EXPECT_THAT(advice_text(of_all, {.width_columns = 100}),
              HasSubstr("(3 ranks; figures of rank 1, the worst): at most 30.0 %"));
  ASSERT_EQ(of_one.findings.size(), 1u);
  EXPECT_EQ(of_one.findings[0].count, 1);
  EXPECT_EQ(of_one.findings[0].what.rank, 1);
}

TEST(MergedTest, same_rule_and_fix_are_counted_and_the_largest_kept) {
  const Rule& rule = all_rules().front();
  const auto findings = merged(
      {{&rule, {.bound = 0.1}}, {&rule, {.bound = 0.3}}, {&rule, {.bound = 0.2, .fix = "other"}}});

  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].count, 2);
  EXPECT_DOUBLE_EQ(*findings[0].what.bound, 0.3);
  EXPECT_EQ(findings[1].what.fix, "other");
}

TEST(ReportTest, json_has_the_keys_that_scripts_rely_on) {
  Facts facts = step_of(100);
  facts.config["loader-workers"] = "0";
  facts.step->idle_data_ns = 20e6;
  nlohmann::ordered_json report = {{"advice", nlohmann::json::array()},
                                   {"not_measured", nlohmann::json::array()}};

  add_to_report(advise(facts), report);

  const auto& one = report.at("advice").at(0);
  for (const char* key : {"id", "rule", "severity", "rank", "stream", "start_ns", "end_ns", "count",
                          "evidence", "gain_ceiling_pct", "fix", "false_if", "check", "source"})
    EXPECT_TRUE(one.contains(key)) << key;
  EXPECT_EQ(one.at("rule"), "input-no-workers");
  EXPECT_DOUBLE_EQ(one.at("gain_ceiling_pct"), 20);
  EXPECT_EQ(one.at("evidence").at(0).at("denominator"), "step");
  EXPECT_THAT(one.at("evidence_text").get<std::string>(),
              HasSubstr("waiting for data 20 % of the step"));
  EXPECT_FALSE(report.at("not_measured").empty());
}

TEST(ReportTest, amounts_of_the_evidence_are_read_without_exponents) {
  Facts facts = step_of(100);
  facts.step->exposed_copies_ns = 8e6;
  facts.copies = CopyFacts{.pageable_ns = 7e6, .pageable_bytes = 1.538e7};
  facts.products = ProductFacts{.flops = 1e12, .unaligned_flops = 1e12, .unaligned_shape = "[]"};
  facts.kernels = KernelFacts{.matrix_ns = 60e6, .short_ns = 12e6, .short_per_step = 12345};
  const std::string text = advice_text(advise(facts), {.width_columns = 200});
  EXPECT_THAT(text, HasSubstr("pageable copies 15.38 MB a step"));
  EXPECT_THAT(text, HasSubstr("largest: [] 1 TFLOP"));
  EXPECT_THAT(text, HasSubstr("such kernels 12345 a step"));
}

TEST(ReportTest, text_fits_into_100_columns) {
  Facts facts = step_of(100);
  facts.products = ProductFacts{
      .flops = 1, .unaligned_flops = 1, .unaligned_shape = "[[2048, 512], [512, 38313]]"};
  facts.kernels = KernelFacts{.matrix_ns = 50e6};
  std::istringstream lines(advice_text(advise(facts), {.width_columns = 100}));
  int seen = 0;
  for (std::string line; std::getline(lines, line); ++seen) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_GT(seen, 3);
}

TEST(ProductTest, counts_and_alignment_by_hand) {
  const auto mm = product_of("aten::mm", "[[4, 8], [8, 16]]");
  ASSERT_TRUE(mm);
  EXPECT_DOUBLE_EQ(mm->flops, 2.0 * 4 * 8 * 16);
  EXPECT_FALSE(mm->aligned);
  const auto addmm = product_of("aten::addmm", "[[16], [32, 8], [8, 16], [], []]");
  ASSERT_TRUE(addmm);
  EXPECT_DOUBLE_EQ(addmm->flops, 2.0 * 32 * 8 * 16);
  EXPECT_TRUE(addmm->aligned);
  const auto bmm = product_of("aten::bmm", "[[3, 8, 8], [3, 8, 24]]");
  ASSERT_TRUE(bmm);
  EXPECT_DOUBLE_EQ(bmm->flops, 2.0 * 3 * 8 * 8 * 24);
  EXPECT_TRUE(bmm->aligned);
  EXPECT_EQ(bmm->divisor, 8);
  EXPECT_EQ(product_of("aten::mm", "[[64, 192], [192, 96]]")->divisor, 32);
}

TEST(ProductTest, rows_of_fused_operators_are_one_extent) {
  const auto linear = product_of("sidestream::linear", "[[2, 4, 8], [8, 24]]");
  ASSERT_TRUE(linear);
  EXPECT_DOUBLE_EQ(linear->flops, 2.0 * 8 * 8 * 24);
  EXPECT_TRUE(linear->aligned);
  const auto mlp =
      product_of("sidestream::mlp_backward", "[[2, 4, 8], [2, 4, 8], [8, 32], [32, 8]]");
  ASSERT_TRUE(mlp);
  EXPECT_DOUBLE_EQ(mlp->flops, 4 * 2.0 * 8 * 8 * 32);
  const auto head = product_of("sidestream::head_loss", "[[2, 4, 8], [50257, 8]]");
  ASSERT_TRUE(head);
  EXPECT_DOUBLE_EQ(head->flops, 2.0 * 8 * 8 * 50257);
  EXPECT_FALSE(head->aligned);
}

TEST(ProductTest, what_is_no_product_is_none) {
  EXPECT_FALSE(product_of("aten::add", "[[4, 8], [8, 16]]"));
  EXPECT_FALSE(product_of("aten::mm", "[[4], [8]]"));
  EXPECT_FALSE(product_of("aten::mm", "nonsense"));
  EXPECT_FALSE(product_of("aten::mm", "[[4, \"x\"], [8, 16]]"));
  EXPECT_FALSE(product_of("aten::mm", "[]"));
}

}  // namespace
}  // namespace sidestream::advice
