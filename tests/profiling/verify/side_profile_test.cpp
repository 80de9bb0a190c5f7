#include "profiling/verify/side_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.hpp"
#include "profiling/verify/verification_report.hpp"
#include "profiling/verify/verification_tables.hpp"

namespace sidestream::verify {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// Two steps of 10 ms; a product at a quarter of the roof, and a copy without one.
Json report() {
  return Json::parse(R"({
    "verdict": "gpu", "steps": [{}, {}], "urgent": [],
    "overview": {"operation_steps": 2, "mean_step": [{"part": "compute", "time_ns": 9000000},
                               {"part": "idle", "time_ns": 1000000},
                               {"part": "  waiting for data", "time_ns": 400000},
                               {"part": "step", "time_ns": 10000000}]},
    "top_ops": [
      {"name": "aten::mm", "total_ns": 8000000, "flops_per_s": 5e10, "bytes_per_s": null,
       "roofline_bound": "compute", "share_of_roof": 0.25, "cause": "fp32, where bf16 is at hand"},
      {"name": "aten::copy_", "total_ns": 2000000, "flops_per_s": null, "bytes_per_s": 1e9,
       "roofline_bound": null, "share_of_roof": 0.01, "cause": null}],
    "advice": [{"title": "Products in fp32", "gain_ceiling_pct": 30.0, "fix": "--precision bf16",
                "false_if": "it does not converge", "check": "the loss",
                "evidence_text": "products 40 % of the step"}]})");
}

TEST(SideProfileTest, operations_of_a_recording_are_of_its_profiled_steps) {
  Json recorded = report();
  recorded["overview"]["operation_steps"] = 4;
  recorded["verdict_sure"] = false;
  recorded["verdict_text"] = "computing or by communication: not sure";

  const SideProfile side = side_profile("runs/a", recorded);

  EXPECT_DOUBLE_EQ(side.top.at(0).step_ms, 2);
  EXPECT_EQ(side.verdict, "computing or by communication: not sure");
}

TEST(SideProfileTest, operations_are_of_a_step_and_room_is_up_to_the_roof) {
  const SideProfile side = side_profile("runs/a", report());

  EXPECT_EQ(side.verdict, "computing");
  EXPECT_DOUBLE_EQ(side.step_ms, 10);
  ASSERT_EQ(side.top.size(), 2u);
  EXPECT_DOUBLE_EQ(side.top[0].step_ms, 4);
  EXPECT_DOUBLE_EQ(side.top[0].share_of_step, 0.4);
  EXPECT_DOUBLE_EQ(*side.top[0].room_ms, 3);
  EXPECT_FALSE(side.top[1].room_ms) << "no roof, no room";
  ASSERT_EQ(side.advice.size(), 1u);
  EXPECT_EQ(side.advice[0].evidence, "products 40 % of the step");
  EXPECT_EQ(side_profile("runs/a", report(), 1).top.size(), 1u);
}

TEST(SideProfileTest, what_is_urgent_is_carried) {
  Json urgent = report();
  urgent["urgent"] = {"Outlier: step 7 took 900 ms", "rank 1 is late in forward"};

  EXPECT_THAT(side_profile("runs/a", urgent).urgent,
              ElementsAre("Outlier: step 7 took 900 ms", "rank 1 is late in forward"));
  EXPECT_THAT(side_profile("runs/a", report()).urgent, IsEmpty());
}

TEST(SideProfileTest, without_roofs_it_says_how_to_measure_them) {
  Json measured = report();
  measured["ceilings"] = {{"fp32", 1e12}};
  EXPECT_TRUE(side_profile("runs/a", measured).has_roofs);

  Verification one;
  one.profiles =
      Profiles{.base = side_profile("runs/a", report()), .fresh = side_profile("runs/b", measured)};
  const std::string text = verification_markdown(one, {});
  const std::size_t said = text.find("`sidestream bench ceilings`");
  ASSERT_NE(said, std::string::npos) << text;
  EXPECT_EQ(text.find("`sidestream bench ceilings`", said + 1), std::string::npos) << "one side";
}

TEST(SideProfileTest, a_report_of_another_form_is_named) {
  try {
    side_profile("runs/a", Json::parse(R"({"steps": []})"));
    FAIL() << "nothing was thrown";
  } catch (const core::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("runs/a"));
  }
}

Verification with_profiles() {
  Verification one{.base_ms = 10, .fresh_ms = 6};
  one.blocks = {{.block = 1, .seed = "1", .base_ms = 10, .fresh_ms = 6}};
  one.profiles =
      Profiles{.base = side_profile("runs/a", report()), .fresh = side_profile("runs/b", report())};
  one.profiles->change.parts = {{"compute", 9, 5}, {"idle: not explained", 1, 1}};
  one.profiles->change.operations = {{"aten::mm", 4, 1}, {"no operation", 6, 5}};
  one.trials = {{.time = "t",
                 .base_flags = "a",
                 .fresh_flags = "b",
                 .verdict = "slower",
                 .reason = "slower: 5 %"}};
  one.commands = {"sidestream train --lr 1"};
  return one;
}

TEST(SideProfileTest, markdown_tells_what_was_slow_advised_changed_and_tried) {
  const Verification one = with_profiles();

  const std::string text = verification_markdown(one, decide(one, {}));

  for (const char* wanted :
       {"## What was slow: the base", "## What is left: the new side", "bound by computing",
        "Products in fp32: at most 30.0 %. Why: products 40 % of the step. Fix: --precision bf16. "
        "False if: "
        "it does "
        "not converge. Check: the loss",
        "room, ms", "1. aten::mm: fp32, where bf16 is at hand",
        "2. aten::copy_: cause not measured", "| compute | 9 | 5 | -4 |", "## Tried and dropped",
        "| a against b | no | slower | slower: 5 % | t |", "sidestream train --lr 1"})
    EXPECT_THAT(text, HasSubstr(wanted));
}

TEST(SideProfileTest, traces_that_say_something_else_than_the_timed_steps_are_pointed_out) {
  constexpr const char* kSides = "They do not agree which side is faster";
  constexpr const char* kProfiler = "The new side was profiled, the other one only recorded";
  Verification one = with_profiles();
  one.base_curves = {{}};
  EXPECT_THAT(verification_markdown(one, {}),
              AllOf(Not(HasSubstr(kSides)), Not(HasSubstr(kProfiler))));

  one.profiles->fresh.step_ms = one.profiles->base.step_ms * 1.2;
  EXPECT_THAT(verification_markdown(one, {}), HasSubstr(kSides));

  one.profiles->base.profiler_off = true;
  EXPECT_THAT(verification_markdown(one, {}), HasSubstr(kProfiler));
  EXPECT_THAT(Json::parse(verification_json(one, {})).at("remarks").dump(), HasSubstr(kProfiler));
}

TEST(SideProfileTest, text_tells_what_was_tried_and_how_it_was_made_in_100_columns) {
  Verification one = with_profiles();
  std::string words;
  for (int i = 0; i < 40; ++i) words += " --word " + std::to_string(i);
  for (std::string* text : {&one.settings.command, &one.commands[0], &one.trials[0].fresh_flags,
                            &one.trials[0].verdict, &one.trials[0].reason})
    *text += words;
  one.version = "0.1.0";
  one.environment = {{"processor", "P"}, {"build", "NCCL: off\nCUDA: off\n"}};

  const std::string text = verification_text(one, decide(one, {}), {.width_columns = 100});

  for (const char* wanted :
       {"\nTried before (the decision log)\n- a against b --word 0", "\n  accepted: no\n",
        "\n  verdict: slower --word 0", "\n  why: slower: 5 % --word 0", "\n  time: t\n",
        "\nHow it was made\n", "\n  sidestream train --lr 1 --word 0", "\n  Sidestream 0.1.0\n",
        "\n  processor: P\n  NCCL: off\n  CUDA: off\n"})
    EXPECT_THAT(text, HasSubstr(wanted));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(SideProfileTest, a_late_rank_is_said_before_what_bounds_a_side) {
  Verification one = with_profiles();
  one.profiles->fresh.urgent = {"rank 1 is late in forward"};

  for (const std::string& text : {verification_markdown(one, decide(one, {})),
                                  verification_text(one, decide(one, {}), {.width_columns = 100})})
    EXPECT_THAT(text, HasSubstr("of the new side: rank 1 is late in forward; bound by computing"));
  const auto json = nlohmann::json::parse(verification_json(one, decide(one, {})));
  EXPECT_EQ(json.at("profiles").at("new").at("urgent").at(0), "rank 1 is late in forward");
}

TEST(SideProfileTest, advice_that_comes_first_says_why) {
  Json loaded = report();
  loaded["advice"].insert(loaded["advice"].begin(), Json{{"title", "Other programs"},
                                                         {"gain_ceiling_pct", 16.6},
                                                         {"comes_first", true},
                                                         {"fix", "the machine alone"}});
  Verification one = with_profiles();
  one.profiles->fresh = side_profile("runs/b", loaded);

  const std::string text = verification_markdown(one, decide(one, {}));

  EXPECT_THAT(text, HasSubstr("Other programs: at most 16.6 %; first, for what else is found"));
  EXPECT_THAT(text, HasSubstr("Products in fp32: at most 30.0 %. Why: products"));
}

// Means of 10 ms on both sides, medians of 10 and 6 ms.
TEST(SideProfileTest, the_profiler_costs_nothing_where_it_was_off) {
  Json recorded = report();
  recorded["metrics"]["profiler_cost"] = 0.0;
  Verification one = with_profiles();
  one.base_curves.resize(1);
  const auto text_of = [&] { return verification_text(one, decide(one, {}), {}); };
  EXPECT_THAT(text_of(), HasSubstr("the profiler's cost"));

  one.profiles->base = one.profiles->fresh = side_profile("runs/a", recorded);

  EXPECT_THAT(text_of(), AllOf(HasSubstr("a mean step takes 10 against 10 ms"),
                               HasSubstr("-4 ms: a mean holds the long steps"),
                               Not(HasSubstr("the profiler's cost"))));
  recorded["metrics"]["profiler_cost"] = nullptr;
  one.profiles->base = side_profile("runs/a", recorded);
  EXPECT_THAT(text_of(), HasSubstr("the profiler's cost")) << "of the base it is not known";
}

TEST(SideProfileTest, json_has_both_sides_and_null_where_there_is_none) {
  Verification one = with_profiles();
  const auto json = nlohmann::json::parse(verification_json(one, decide(one, {})));
  EXPECT_DOUBLE_EQ(json.at("profiles").at("new").at("top_ops").at(0).at("room_ms"), 3);
  EXPECT_DOUBLE_EQ(json.at("trace").at("parts").at(0).at("change_ms"), -4);
  EXPECT_EQ(json.at("trials").at(0).at("verdict"), "slower");

  one.profiles.reset();
  one.profiles_missing = "--profile off";
  const auto without = nlohmann::json::parse(verification_json(one, decide(one, {})));
  EXPECT_TRUE(without.at("profiles").at("base").is_null());
  EXPECT_EQ(without.at("profiles").at("needs"), "--profile off");
  EXPECT_TRUE(without.at("trace").is_null());
}

}  // namespace
}  // namespace sidestream::verify
