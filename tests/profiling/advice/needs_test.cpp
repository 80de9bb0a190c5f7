// A rule without its inputs says what it needs: it never passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "profiling/advice/foreign_needs.hpp"
#include "tests/profiling/advice/facts_maker.hpp"
#include "tests/profiling/advice/traced_facts.hpp"

namespace sidestream::advice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_needs(const Facts& facts, const std::string& rule, const std::string& what) {
  const Advice advice = advise(facts);
  EXPECT_FALSE(passes(advice, rule)) << rule;
  EXPECT_THAT(needs_of(advice, rule), HasSubstr(what)) << rule;
}

TEST(NeedsTest, without_steps_no_rule_passes) {
  const Advice advice = advise({.world_size = 2, .on_device = true});

  EXPECT_TRUE(advice.findings.empty());
  EXPECT_THAT(advice.nothing_found, IsEmpty());
  for (const char* rule : {"not-overlapped", "shapes", "many-small-files"})
    EXPECT_THAT(needs_of(advice, rule), HasSubstr("ProfilerStep")) << rule;
}

TEST(NeedsTest, a_straggler_needs_every_rank_and_collectives_that_match) {
  Facts facts = step_of(100);
  facts.collectives = CollectiveFacts{.per_step = 9, .bytes = 1e8};
  EXPECT_TRUE(passes(advise(facts), "straggler"));
  facts.traces.matched_collectives = false;
  expect_needs(facts, "straggler", "collectives in the traces of all ranks");
  facts.traces.every_rank = false;
  expect_needs(facts, "straggler", "traces of all ranks of a process group");
}

TEST(NeedsTest, rules_about_communication_need_collectives_unless_a_rank_is_alone) {
  Facts facts = step_of(100);
  facts.kernels = KernelFacts{.per_step = 9};
  for (const char* rule : {"not-overlapped", "link-bound", "one-stream"})
    expect_needs(facts, rule, "collectives in the traces");
  facts.world_size = 1;
  for (const char* rule : {"not-overlapped", "link-bound", "one-stream", "straggler"})
    EXPECT_TRUE(passes(advise(facts), rule)) << rule;
}

// The host's half of a program that may have computed on a device.
TEST(NeedsTest, a_host_without_its_device_is_not_a_host_that_computes) {
  Facts facts = step_of(100);
  facts.on_device = false;
  facts.world_size = 1;
  facts.syncs = SyncFacts{.item_calls = 2};
  facts.products = ProductFacts{.flops = 1e9, .unaligned_flops = 1e9, .host_ns = 50e6};
  facts.config = {{"log-every", "1"}, {"loader-workers", "2"}, {"prefetch", "2"}};
  const auto of_a_device = {"input-slow",
                            "pageable-copies",
                            "default-stream",
                            "item-each-step",
                            "synchronisation",
                            "logging-each-step",
                            "heavy-host-operators",
                            "launch-bound",
                            "no-amp",
                            "shapes",
                            "shapes-64",
                            "low-occupancy",
                            "small-kernels",
                            "channels-first",
                            "convolution-choice",
                            "memory-full",
                            "memory-free",
                            "one-stream",
                            "separate-weight-decay"};
  EXPECT_TRUE(passes(advise(facts), "memory-full")) << "a host that computes has none";
  facts.traces.without_device = true;
  for (const char* rule : of_a_device) expect_needs(facts, rule, "device events");
  expect_needs(facts, "old-libraries", "versions of CUDA");
}

// A run that replays graphs already, recorded without what is in them: the host is not too slow.
TEST(NeedsTest, kernels_inside_graphs_are_asked_for) {
  Facts facts = step_of(100);
  facts.world_size = 1;
  facts.step->idle_ns = facts.step->idle_host_ns = 90e6;
  facts.kernels = KernelFacts{.per_step = 9};
  facts.syncs = SyncFacts{};
  facts.memory_share = 0.2;
  facts.gpu_utilisation = 0.1;
  EXPECT_TRUE(speaks(advise(facts), "launch-bound"));
  EXPECT_TRUE(speaks(advise(facts), "memory-free"));
  facts.traces.hidden_kernels = true;
  for (const char* rule : {"launch-bound", "small-kernels", "synchronisation", "memory-free"})
    expect_needs(facts, rule, "--cuda-graph-trace=node");
}

TEST(NeedsTest, the_optimizer_is_looked_into_by_operators_or_the_setting) {
  Facts facts = step_of(100);
  facts.optimizer = OptimizerFacts{.time_ns = 20e6};
  EXPECT_TRUE(passes(advise(facts), "unfused-optimizer"));
  facts.traces.operators = false;
  expect_needs(facts, "unfused-optimizer", "operators of the host");
  expect_needs(facts, "separate-weight-decay", "operators of the host");
  facts.config["fused-optimizer"] = "on";
  EXPECT_TRUE(passes(advise(facts), "unfused-optimizer"));
  expect_needs(facts, "separate-weight-decay", "operators of the host");
  facts.config["fused-optimizer"] = "off";
  EXPECT_TRUE(speaks(advise(facts), "unfused-optimizer"));
}

TEST(NeedsTest, waiting_for_data_needs_ranges_of_reading_it) {
  Facts facts = step_of(100);
  facts.config = {{"loader-workers", "2"}, {"prefetch", "0"}};
  facts.data = DataFacts{.files = 4000, .mean_bytes = 5000};
  facts.system.disk_busy = 0.1;
  EXPECT_TRUE(passes(advise(facts), "input-no-prefetch"));
  facts.traces.input_ranges = false;
  for (const char* rule : {"input-no-prefetch", "many-small-files", "storage-saturated"})
    expect_needs(facts, rule, "ranges of reading batches");
  facts.config = {};
  expect_needs(facts, "input-slow", "ranges of reading batches");
}

TEST(NeedsTest, rules_about_the_host_need_its_operators_and_calls) {
  Facts facts = step_of(100);
  facts.kernels = KernelFacts{.per_step = 9};
  expect_needs(facts, "launch-bound", "host events");
  facts.syncs = SyncFacts{};
  EXPECT_TRUE(passes(advise(facts), "launch-bound"));
  EXPECT_TRUE(passes(advise(facts), "item-each-step"));
  EXPECT_TRUE(passes(advise(facts), "synchronisation"));
  facts.traces.operators = facts.traces.runtime_calls = false;
  expect_needs(facts, "item-each-step", "operators of the host");
  expect_needs(facts, "synchronisation", "calls of CUDA's runtime");
}

TEST(NeedsTest, low_occupancy_needs_occupancies) {
  Facts facts = step_of(100);
  facts.kernels = KernelFacts{.per_step = 9};
  EXPECT_TRUE(passes(advise(facts), "low-occupancy"));
  facts.traces.occupancies = false;
  expect_needs(facts, "low-occupancy", "occupancy of kernels");
}

TEST(NeedsTest, what_traces_hold_is_read_from_their_events) {
  const TraceContents all = facts_of({}).traces;

  EXPECT_TRUE(all.every_rank);
  EXPECT_TRUE(all.matched_collectives);
  EXPECT_TRUE(all.operators);
  EXPECT_TRUE(all.runtime_calls);
  EXPECT_TRUE(all.input_ranges);
  EXPECT_TRUE(all.occupancies);
  EXPECT_FALSE(all.without_device);
}

constexpr const char* kStep =
    R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":900})";

TraceContents contents_of(const std::string& head, const std::string& event) {
  const std::string text = "{" + head + R"("traceEvents":[)" + kStep + "," + event + "]}";
  return facts_of_text(text).traces;
}

TEST(NeedsTest, one_of_two_ranks_is_not_every_rank) {
  const TraceContents half = contents_of(
      R"("distributedInfo":{"rank":0,"world_size":2},)",
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":9,"args":{"stream":7}})");

  EXPECT_FALSE(half.every_rank);
  EXPECT_FALSE(half.matched_collectives);
  EXPECT_FALSE(half.operators);
  EXPECT_FALSE(half.runtime_calls);
  EXPECT_FALSE(half.input_ranges);
  EXPECT_FALSE(half.occupancies);
}

TEST(NeedsTest, a_graph_for_most_of_a_step_hides_kernels) {
  const auto graph = [](const std::string& length_us) {
    return R"({"ph":"X","cat":"gpu_graph","name":"graph","pid":0,"tid":7,"ts":5,"dur":)" +
           length_us + "}";
  };

  EXPECT_TRUE(contents_of("", graph("800")).hidden_kernels);
  EXPECT_FALSE(contents_of("", graph("8")).hidden_kernels);
}

TEST(NeedsTest, operators_alone_may_have_worked_on_a_device) {
  const TraceContents host = contents_of(
      "", R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":5,"dur":9})");

  EXPECT_TRUE(host.without_device);
  EXPECT_TRUE(host.operators);
}

// Of a trace of another program the words are PyTorch's.
TEST(NeedsTest, what_is_missing_has_words_for_other_programs) {
  for (const char* needs :
       {kNeedsDevice, kNeedsInputRanges, "collectives in the traces",
        "calls of CUDA's runtime in the traces", "occupancy of kernels in the traces"}) {
    EXPECT_NE(foreign_needs(needs, Recorder::kKineto), needs);
    EXPECT_NE(foreign_needs(needs, Recorder::kNsys), needs);
  }
}

// A need is said once, with all rules that wait for it.
TEST(NeedsTest, the_terminal_says_what_to_record_for_which_rules) {
  const std::string samples =
      "system samples inside the steps (--sample-hz 20), and a need that "
      "is longer than any line of a terminal that shows it";
  const Advice advice{
      .not_measured = {{"rule-a", samples}, {"rule-b", "kernels"}, {"rule-c", samples}}};

  const std::string text = advice_text(advice, {.width_columns = 100});

  EXPECT_THAT(text, HasSubstr("\n  needs kernels: rule-b\n"));
  EXPECT_THAT(
      advice_text(advice, {.width_columns = 100}, {{"share", "kernels"}, {"mfu", "more"}}),
      AllOf(HasSubstr("\n  needs kernels: share, rule-b\n"), HasSubstr("\n  needs more: mfu\n")));
  EXPECT_THAT(text, HasSubstr("any line of\n    a terminal that shows it: rule-a, rule-c\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace sidestream::advice
