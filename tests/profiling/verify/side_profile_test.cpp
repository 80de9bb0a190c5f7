#include "profiling/verify/side_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "profiling/verify/verification_report.hpp"
#include "profiling/verify/verification_tables.hpp"

namespace sidestream::verify {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// Two steps of 10 ms; a product at a quarter of the roof, and a copy without one.
Json report() {
  return Json::parse(R"({
    "verdict": "gpu", "steps": [{}, {}],
    "overview": {"mean_step": [{"part": "compute", "time_ns": 9000000},
                               {"part": "idle", "time_ns": 1000000},
                               {"part": "  waiting for data", "time_ns": 400000},
                               {"part": "step", "time_ns": 10000000}]},
    "top_ops": [
      {"name": "aten::mm", "total_ns": 8000000, "flops_per_s": 5e10, "bytes_per_s": null,
       "roofline_bound": "compute", "share_of_roof": 0.25, "cause": "fp32, where bf16 is at hand"},
      {"name": "aten::copy_", "total_ns": 2000000, "flops_per_s": null, "bytes_per_s": 1e9,
       "roofline_bound": null, "share_of_roof": 0.01, "cause": null}],
    "advice": [{"title": "Products in fp32", "gain_ceiling_pct": 30.0, "fix": "--precision bf16",
                "evidence_text": "products 40 % of the step"}]})");
}

TEST(SideProfileTest, operations_of_a_recording_are_of_its_profiled_steps) {
  Json recorded = report();
  recorded["overview"]["profiled_steps"] = 4;
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
  one.trials = {{.time = "t", .base_flags = "a", .fresh_flags = "b", .verdict = "slower"}};
  one.commands = {"sidestream train --lr 1"};
  return one;
}

TEST(SideProfileTest, markdown_tells_what_was_slow_advised_changed_and_tried) {
  const Verification one = with_profiles();

  const std::string text = verification_markdown(one, decide(one, {}));

  for (const char* wanted :
       {"## What was slow: the base", "## What is left: the new side", "bound by computing",
        "Products in fp32: at most 30.0 %. Fix: --precision bf16", "room, ms",
        "1. aten::mm: fp32, where bf16 is at hand", "2. aten::copy_: cause not measured",
        "| compute | 9 | 5 | -4 |", "## Tried and dropped", "| a against b | no | slower | t |",
        "sidestream train --lr 1"})
    EXPECT_THAT(text, HasSubstr(wanted));
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
