// Rules about settings: what the traces say of them decides, and without that it is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiling/advice/facts_maker.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Facts on_the_processor() {
  Facts facts = step_of(100);
  facts.on_device = false;
  facts.config = {{"flush-denormals", "off"}};
  facts.step->compute_ns = 80e6;
  return facts;
}

const Finding* finding_of(const Advice& advice, const std::string& rule) {
  for (const Finding& one : advice.findings)
    if (one.rule->id == rule) return &one;
  return nullptr;
}

TEST(DenormalsTest, compute_far_below_its_peak_is_bounded_by_what_it_takes) {
  Facts facts = on_the_processor();
  facts.mfu = 0.008;  // of a step: 0.01 of the time that computes
  EXPECT_NEAR(*finding_of(advise(facts), "denormals")->what.bound, 0.8 * 0.99, 1e-9);
  facts.mfu = 0.064;  // 0.08: what is left of it is the bound
  EXPECT_NEAR(*finding_of(advise(facts), "denormals")->what.bound, 0.8 * 0.92, 1e-9);
  facts.mfu = 0.3;
  EXPECT_TRUE(passes(advise(facts), "denormals")) << "no product is 25 times slower there";
}

TEST(DenormalsTest, products_with_shapes_are_held_against_their_own_roof) {
  Facts facts = on_the_processor();
  facts.mfu = 0.3;
  facts.ceilings = Ceilings{.flops_per_s = {{"fp32", 1e11}, {"bf16", 4e11}}};
  facts.products = ProductFacts{.flops = 1e8, .fp32_flops = 1e8, .host_ns = 50e6};  // 2 %
  EXPECT_NEAR(*finding_of(advise(facts), "denormals")->what.bound, 0.8 * 0.98, 1e-9);
  facts.products->flops = facts.products->fp32_flops = 1e9;  // 20 %
  EXPECT_TRUE(passes(advise(facts), "denormals"));
  facts.products->fp32_flops = 0;  // 5 % of the roof of bf16
  EXPECT_TRUE(speaks(advise(facts), "denormals"));
}

TEST(DenormalsTest, without_figures_of_compute_it_is_a_setting_alone_and_comes_last) {
  Facts facts = on_the_processor();
  facts.config["loader-workers"] = "2";
  facts.step->idle_data_ns = 50e6;

  const Advice advice = advise(facts);

  ASSERT_EQ(advice.findings.size(), 2u);
  EXPECT_STREQ(advice.findings.back().rule->id, "denormals");
  EXPECT_FALSE(advice.findings.back().what.bound);
  EXPECT_THAT(advice_text(advice, {.width_columns = 300}), HasSubstr("a setting alone"));
}

Facts with_two_threads_a_core() {
  Facts facts = step_of(100);
  facts.on_device = false;
  facts.environment = {
      {"cores", "4"}, {"threads_per_rank", "4"}, {"world_size", "2"}, {"nodes", "1"}};
  return facts;
}

TEST(OversubscribedTest, without_samples_it_says_that_it_is_the_settings_alone) {
  const Advice advice = advise(with_two_threads_a_core());

  ASSERT_TRUE(speaks(advice, "oversubscribed"));
  EXPECT_NEAR(*finding_of(advice, "oversubscribed")->what.bound, 0.5, 1e-9);
  EXPECT_THAT(advice_text(advice, {.width_columns = 300}), HasSubstr("by the settings alone"));
}

TEST(OversubscribedTest, ranks_of_one_thread_each_need_to_be_fewer) {
  Facts facts = with_two_threads_a_core();
  facts.environment = {
      {"cores", "2"}, {"threads_per_rank", "1"}, {"world_size", "4"}, {"nodes", "1"}};

  const std::string text = advice_text(advise(facts), {.width_columns = 300});

  EXPECT_THAT(text, HasSubstr("fewer ranks on this node"));
  EXPECT_THAT(text, Not(HasSubstr("--threads auto")));
}

TEST(OversubscribedTest, samples_say_whether_threads_wait_for_processors) {
  Facts facts = with_two_threads_a_core();
  facts.system.process_cores = 2;
  facts.system.process_cores_short = 0.02;
  EXPECT_TRUE(passes(advise(facts), "oversubscribed"));
  facts.system.process_cores_short = 2;
  const Advice advice = advise(facts);
  ASSERT_TRUE(speaks(advice, "oversubscribed"));
  EXPECT_THAT(advice_text(advice, {.width_columns = 300}),
              HasSubstr("ready and not running 50 % of the processors that a rank wants"));
  EXPECT_THAT(advice_text(advice, {.width_columns = 300}), Not(HasSubstr("settings alone")));
}

TEST(UnfusedOperatorsTest, activations_and_norms_of_their_own_are_advised_to_be_fused) {
  Facts facts = step_of(100);
  facts.on_device = false;
  EXPECT_THAT(needs_of(advise(facts), "unfused-operators"), HasSubstr("run directory"));
  facts.config["fused-ops"] = "off";
  EXPECT_THAT(needs_of(advise(facts), "unfused-operators"), HasSubstr("operators"));
  facts.fusible_ns = 15e6;
  const Advice advice = advise(facts);
  ASSERT_TRUE(speaks(advice, "unfused-operators"));
  EXPECT_NEAR(*advice.findings.front().what.bound, 0.15, 1e-9);
  EXPECT_EQ(advice.findings.front().fix(), "--fused-ops on");
  facts.config["fused-ops"] = "on";
  EXPECT_TRUE(passes(advise(facts), "unfused-operators"));
}

// Configurations are written by hand, too.
TEST(SettingsRulesTest, loader_workers_that_are_no_number_are_no_evidence) {
  Facts facts = step_of(100);
  facts.step->idle_data_ns = 20e6;
  const auto count_of_evidence = [&](const std::string& workers) {
    facts.config["loader-workers"] = workers;
    const Advice advice = advise(facts);
    EXPECT_TRUE(speaks(advice, "input-slow")) << workers;
    return advice.findings.front().what.evidence.size();
  };

  const std::size_t with_number = count_of_evidence("2");

  for (const char* text : {"auto", "", "2 threads", "99999e99999"})
    EXPECT_EQ(count_of_evidence(text), with_number - 1) << text;
}

}  // namespace
}  // namespace sidestream::advice
