// Advice names no flag that does not exist.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "profiling/advice/advice.hpp"
#include "profiling/advice/pytorch_words.hpp"
#include "tests/profiling/advice/facts_maker.hpp"

namespace sidestream::advice {
namespace {

// Those of `train`, and the two sides of `verify`.
std::set<std::string> existing_flags() {
  std::set<std::string> flags = {"base", "new"};
  std::ifstream file(SIDESTREAM_TRAIN_FLAGS);
  for (std::string flag; file >> flag;) flags.insert(flag);
  return flags;
}

std::set<std::string> flags_in(const std::string& text) {
  static const std::regex flag("--([a-z][a-z0-9-]*)");
  std::set<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), flag); at != std::sregex_iterator();
       ++at)
    found.insert((*at)[1]);
  return found;
}

void expect_existing(const std::string& text, const std::string& whose) {
  static const std::set<std::string> existing = existing_flags();
  ASSERT_GT(existing.size(), 50u) << SIDESTREAM_TRAIN_FLAGS;
  for (const std::string& flag : flags_in(text))
    EXPECT_TRUE(existing.contains(flag)) << whose << ": --" << flag;
}

TEST(FixFlagsTest, every_flag_of_a_rule_exists) {
  std::size_t named = 0;
  for (const Rule& rule : all_rules()) {
    for (const char* text : {rule.title, rule.looks_at, rule.fix, rule.false_if, rule.check}) {
      expect_existing(text, rule.id);
      named += flags_in(text).size();
    }
  }
  EXPECT_GT(named, 10u);
}

TEST(FixFlagsTest, traces_of_other_programs_get_words_without_our_flags) {
  for (const Rule& rule : all_rules()) {
    ASSERT_NE(pytorch_words(rule.id), nullptr) << rule.id;
    const Finding one{.rule = &rule, .foreign = true};
    for (const std::string& text : {one.fix(), one.false_if(), one.check()})
      EXPECT_TRUE(flags_in(text).empty()) << rule.id << ": " << text;
  }
  EXPECT_EQ(pytorch_words("no such rule"), nullptr);
  Facts facts{.world_size = 2, .traces = {.operators = true}, .foreign = true};
  facts.step = StepFacts{.steps = 4, .window_ns = 1e8};
  facts.optimizer = OptimizerFacts{.launches = 500, .time_ns = 2e7};
  const Advice advice = advise(facts);
  ASSERT_EQ(advice.findings.size(), 1u);
  EXPECT_NE(advice.findings.front().fix().find("fused=True"), std::string::npos);
}

// Neither what rules lack nor what the report itself could not measure.
TEST(FixFlagsTest, what_traces_of_other_programs_lack_is_asked_for_in_words_of_their_recorder) {
  for (const Recorder recorder : {Recorder::kKineto, Recorder::kNsys}) {
    Facts facts{.world_size = 2, .recorder = recorder, .on_device = true, .foreign = true};
    std::set<std::string> asked;
    for (const bool steps : {false, true}) {
      if (steps) facts.step = StepFacts{.steps = 4, .window_ns = 1e8};
      for (const auto& [rule, needs] : advise(facts).not_measured) asked.insert(needs);
    }
    nlohmann::ordered_json report;
    report["not_measured"].push_back({{"rule", "flops"}, {"needs", "shapes (--profile-shapes)"}});
    report["not_measured"].push_back({{"rule", "machine_cpu"}, {"needs", "samples (--sample-hz)"}});
    add_to_report(advise(facts), report);
    for (const auto& one : report["not_measured"]) asked.insert(one["needs"].get<std::string>());
    std::string all;
    for (const std::string& needs : asked) {
      all += needs + "\n";
      for (const std::string& flag : flags_in(needs))
        EXPECT_FALSE(existing_flags().contains(flag)) << needs;
    }
    EXPECT_NE(all.find("record_shapes=True"), std::string::npos) << all;
    EXPECT_EQ(all.find("nsys profile") != std::string::npos, recorder == Recorder::kNsys) << all;
  }
}

TEST(FixFlagsTest, every_flag_that_a_missing_input_asks_for_exists) {
  for (const auto& [rule, needs] : advise({.world_size = 2, .on_device = true}).not_measured)
    expect_existing(needs, rule);
  Facts facts{.world_size = 2, .on_device = true};
  facts.step = StepFacts{.steps = 4, .window_ns = 1e8};
  for (const auto& [rule, needs] : advise(facts).not_measured) expect_existing(needs, rule);
}

TEST(FixFlagsTest, every_flag_for_a_slow_rank_exists) {
  for (const char* phase : {"data", "allreduce", "checkpoint", "forward"}) {
    Facts facts{.world_size = 2, .on_device = true};
    facts.step = StepFacts{.steps = 4, .window_ns = 1e8};
    facts.collectives = CollectiveFacts{};
    facts.straggler = late_rank(1, 20'000'000, phase);
    const Advice advice = advise(facts);
    ASSERT_FALSE(advice.findings.empty());
    expect_existing(advice.findings.front().what.fix, phase);
  }
}

}  // namespace
}  // namespace sidestream::advice
