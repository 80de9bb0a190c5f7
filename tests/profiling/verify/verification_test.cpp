#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.hpp"
#include "profiling/verify/verification_report.hpp"
#include "tests/profiling/verify/run_maker.hpp"

namespace sidestream::verify {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Verification verification_of(const std::vector<double>& base_ms, const std::vector<double>& new_ms,
                             RunShape fresh_shape = {}) {
  std::vector<RecordedRun> base, fresh;
  for (std::size_t i = 0; i < base_ms.size(); ++i) {
    const int seed = static_cast<int>(i) + 1;
    base.push_back(make_run({.step_ms = base_ms[i], .seed = seed}));
    fresh_shape.step_ms = new_ms[i];
    fresh_shape.seed = seed;
    fresh.push_back(make_run(fresh_shape));
    fresh.back().config["overlap"] = "on";
  }
  return verify_runs(base, fresh,
                     {.command = "verify", .base_flags = "--overlap off", .fresh_flags = "(none)"});
}

TEST(VerificationTest, faster_and_the_same_is_accepted) {
  const Verification one = verification_of({100, 102, 98}, {80, 81, 79});
  const Decision decision = decide(one, {});

  EXPECT_EQ(verdict_word(one), "faster");
  EXPECT_TRUE(decision.accepted);
  EXPECT_EQ(decision.code, GateCode::kPassed);
  EXPECT_EQ(one.convergence.verdict, Convergence::kIdentical);
}

TEST(VerificationTest, parts_add_up_on_both_sides) {
  const Verification one =
      verification_of({100, 102, 98}, {80, 81, 79}, {.reader_ms = 1, .exposed_ms = 3});
  double base = 0, fresh = 0, change = 0;
  for (const Part& part : one.parts) {
    base += part.base_ms;
    fresh += part.fresh_ms;
    change += part.change_ms();
  }

  EXPECT_EQ(one.parts.size(), 3u);
  EXPECT_DOUBLE_EQ(base, one.base_ms);
  EXPECT_DOUBLE_EQ(fresh, one.fresh_ms);
  EXPECT_NEAR(change, -20, 1e-9);
  EXPECT_DOUBLE_EQ(one.parts[0].change_ms(), -4);
  EXPECT_DOUBLE_EQ(one.parts[1].change_ms(), -7);
  ASSERT_TRUE(one.parts[0].interval_ms);
  EXPECT_NEAR(one.parts[0].interval_ms->low, -4, 1e-9);  // the same in every block
  EXPECT_LT(one.parts[2].interval_ms->low, -9);
  EXPECT_GT(one.parts[2].interval_ms->high, -9.5);
}

TEST(VerificationTest, one_block_is_inconclusive_and_never_accepted) {
  const Verification one = verification_of({100}, {50});

  EXPECT_EQ(verdict_word(one), "inconclusive");
  EXPECT_FALSE(decide(one, {}).accepted);
  EXPECT_EQ(decide(one, {}).code, GateCode::kPassed);
  EXPECT_EQ(decide(one, {.fail_if_slower_pct = 5}).code, GateCode::kCannotJudge);
}

TEST(VerificationTest, one_block_has_losses_and_no_interval) {
  const Verification one = verification_of({100}, {50}, {.loss_offset = 0.01});
  const auto json = nlohmann::json::parse(verification_json(one, decide(one, {})));
  const auto& loss = json.at("convergence").at("final_val_loss");

  EXPECT_NEAR(loss.at("difference"), 0.01, 1e-9);
  EXPECT_TRUE(loss.at("low").is_null() && loss.at("spread_of_seeds").is_null());
  EXPECT_TRUE(json.at("step_time").at("base_low_ms").is_null());
  EXPECT_THAT(one.convergence.reason, HasSubstr("one pair has no spread of seeds"));
  EXPECT_THAT(verification_text(one, decide(one, {}), {.width_columns = 100}),
              HasSubstr("Losses at the end"));
}

TEST(VerificationTest, gate_uses_the_whole_interval) {
  const Gates gate{.fail_if_slower_pct = 5};

  EXPECT_EQ(decide(verification_of({100, 100, 100}, {120, 121, 119}), gate).code,
            GateCode::kSlower);
  EXPECT_EQ(decide(verification_of({100, 100, 100}, {101, 102, 101.5}), gate).code,
            GateCode::kPassed);
  EXPECT_EQ(decide(verification_of({100, 100, 100}, {90, 130, 100}), gate).code,
            GateCode::kCannotJudge);
}

TEST(VerificationTest, slower_without_a_gate_is_not_accepted_and_no_failure) {
  const Decision decision = decide(verification_of({100, 100, 100}, {120, 121, 119}), {});

  EXPECT_FALSE(decision.accepted);
  EXPECT_EQ(decision.code, GateCode::kPassed);
}

TEST(VerificationTest, faster_but_worse_fails) {
  const Decision decision =
      decide(verification_of({100, 100, 100}, {50, 51, 50}, {.loss_offset = 0.4}), {});

  EXPECT_FALSE(decision.accepted);
  EXPECT_EQ(decision.code, GateCode::kDiverged);
}

TEST(VerificationTest, faster_without_equal_convergence_is_not_accepted) {
  std::vector<RecordedRun> base, fresh;
  for (int seed = 1; seed <= 3; ++seed) {
    base.push_back(make_run({.step_ms = 100.0 + seed, .seed = seed}));
    fresh.push_back(make_run({.step_ms = 50.0 + seed, .seed = seed}));
    fresh.back().config["lr"] = "0";  // learns nothing, and is not compared
  }
  const Decision decision = decide(verify_runs(base, fresh, {}), {});

  EXPECT_FALSE(decision.accepted);
  EXPECT_THAT(decision.reason, HasSubstr("convergence not shown"));
}

TEST(VerificationTest, one_batch_for_all_steps_is_a_proof_and_never_accepted) {
  std::vector<RecordedRun> base, fresh;
  for (int seed = 1; seed <= 3; ++seed) {
    base.push_back(make_run({.step_ms = 100, .seed = seed}));
    fresh.push_back(make_run({.step_ms = 70.0 + 0.1 * seed, .seed = seed}));
    fresh.back().config["fix-batch"] = "on";
  }
  const Decision decision = decide(verify_runs(base, fresh, {}), {});

  EXPECT_FALSE(decision.accepted);
  EXPECT_THAT(decision.reason, HasSubstr("is what the input costs"));
}

TEST(VerificationTest, clocks_that_fell_are_part_of_the_verdict) {
  std::vector<RecordedRun> base, fresh;
  for (int seed = 1; seed <= 2; ++seed) {
    base.push_back(make_run({.step_ms = 100, .seed = seed}));
    fresh.push_back(make_run({.step_ms = 105.0 + seed, .seed = seed}));
    base.back().machine = MachineState{.gpu_mhz = 2000};
    fresh.back().machine = MachineState{.gpu_mhz = 1900};
  }
  EXPECT_THAT(verdict_sentence(verify_runs(base, fresh, {})),
              HasSubstr("; clocks fell by 5.0 % from base to new (GPU 2000 to 1900 MHz)"));
  fresh.back().machine.reset();
  const Verification unknown = verify_runs(base, fresh, {});
  EXPECT_FALSE(unknown.machine);
  EXPECT_THAT(verification_text(unknown, decide(unknown, {}), {.width_columns = 100}),
              HasSubstr("Clocks: not measured"));
}

TEST(VerificationTest, clocks_that_rose_by_as_much_withhold_the_gain) {
  Verification one = verification_of({100, 102, 98}, {95, 97.2, 93.3});
  ASSERT_TRUE(decide(one, {}).accepted);
  one.machine = MachineChange{.base = {.cpu_mhz = 3000}, .fresh = {.cpu_mhz = 3150}};
  EXPECT_FALSE(decide(one, {}).accepted);
  EXPECT_THAT(decide(one, {}).reason, HasSubstr("the clocks rose by 5.0 %"));
  EXPECT_EQ(verdict_word(one), "inconclusive");
  EXPECT_THAT(verdict_sentence(one), HasSubstr("inconclusive: the clocks rose by 5.0 %"));
  one.machine->fresh.cpu_mhz = 3090;  // 3 %, and the step is shorter by 4 % or more
  EXPECT_TRUE(decide(one, {}).accepted);
  one.machine->fresh.cpu_mhz = 2800;
  EXPECT_TRUE(decide(one, {}).accepted);
}

TEST(VerificationTest, clocks_that_fell_by_as_much_withhold_the_loss) {
  Verification one = verification_of({95, 97.2, 93.3}, {100, 102, 98});
  const Gates gates{.fail_if_slower_pct = 1};
  ASSERT_EQ(decide(one, gates).code, GateCode::kSlower);
  one.machine = MachineChange{.base = {.cpu_mhz = 3000}, .fresh = {.cpu_mhz = 2850}};
  EXPECT_EQ(decide(one, gates).code, GateCode::kCannotJudge);
  EXPECT_THAT(decide(one, {}).reason, HasSubstr("slower, but the clocks fell by 5.0 %"));
  EXPECT_EQ(verdict_word(one), "inconclusive");
  one.machine->fresh.cpu_mhz = 2970;
  EXPECT_EQ(decide(one, gates).code, GateCode::kSlower);
}

// No difference at clocks 5 % higher is a step that is 5 % longer.
TEST(VerificationTest, clocks_that_rose_may_hide_a_loss_from_the_gate) {
  Verification one = verification_of({100, 102, 98}, {100.2, 101.9, 98.1});
  const Gates gates{.fail_if_slower_pct = 2};
  ASSERT_EQ(decide(one, gates).code, GateCode::kPassed);
  one.machine = MachineChange{.base = {.gpu_mhz = 1900}, .fresh = {.gpu_mhz = 1995}};
  EXPECT_EQ(decide(one, gates).code, GateCode::kCannotJudge);
  EXPECT_THAT(decide(one, gates).reason, HasSubstr("rose by 5.0 %, which may hide a longer step"));
  one.machine->fresh.gpu_mhz = 1905;
  EXPECT_EQ(decide(one, gates).code, GateCode::kPassed);
}

// Ratios 0.6, 1 and 2.4; medians 100 and 100.
TEST(VerificationTest, ratio_of_the_pairs_and_medians_of_the_sides_are_told_apart) {
  const Verification one = verification_of({100, 100, 50}, {60, 100, 120});
  EXPECT_DOUBLE_EQ(one.base_ms, one.fresh_ms);
  const double ratio = std::cbrt(0.6 * 1.0 * 2.4);
  EXPECT_THAT(verdict_sentence(one),
              HasSubstr(fmt::format("by pairs a step takes {:+.1f} % (geometric mean of the ratios "
                                    "of 3 blocks",
                                    (ratio - 1) * 100)));
  EXPECT_THAT(verdict_sentence(one),
              HasSubstr("by the median of each side +0.0 % (100 ms against 100 ms)"));
}

TEST(VerificationTest, no_difference_says_what_could_have_been_shown) {
  const Verification one = verification_of({100, 100, 50}, {60, 95, 120});
  ASSERT_EQ(verdict_word(one), "no difference shown");
  EXPECT_THAT(
      verdict_sentence(one),
      StartsWith("no difference shown: these 3 blocks scatter too much to be counted on for "
                 "one below a factor of " +
                 fmt::format("{:.3g}", 1 + *one.smallest_effect)));
  EXPECT_THAT(verdict_sentence(one), HasSubstr("by the median of each side -5.0 % (95 ms against "
                                               "100 ms), of the other sign"));
  EXPECT_THAT(verdict_sentence(verification_of({100, 102, 98}, {95, 97.2, 93.3})),
              Not(AnyOf(HasSubstr("scatter"), HasSubstr("other sign"))));
}

TEST(VerificationTest, an_interval_of_many_powers_of_ten_is_none) {
  const Verification one = verification_of({100, 100}, {400, 90});
  ASSERT_FALSE(has_usable_interval(*one.step_time));
  EXPECT_THAT(verdict_sentence(one),
              AllOf(HasSubstr("2 blocks, no usable interval"),
                    HasSubstr("below a factor of more than 10 ("), Not(HasSubstr("95 %"))));
  EXPECT_THAT(speed_up_text(one), HasSubstr("x (no usable interval)"));
  EXPECT_TRUE(has_usable_interval(*verification_of({100, 102, 98}, {95, 97.2, 93.3}).step_time));
}

TEST(VerificationTest, blocks_that_would_have_shown_little_need_no_excuse) {
  const std::vector<double> same(12, 100.0);
  for (const auto& fresh :
       {same, {100, 100.1, 99.9, 100.2, 99.8, 100, 100.1, 99.9, 100, 100.1, 99.8, 100.2}}) {
    const Verification one = verification_of(same, fresh);
    ASSERT_EQ(verdict_word(one), "no difference shown");
    EXPECT_THAT(verdict_sentence(one),
                Not(AnyOf(HasSubstr("scatter too much"), HasSubstr("other sign"))));
  }
}

TEST(VerificationTest, work_of_others_is_said_with_the_verdict) {
  Verification one = verification_of({100, 102, 98}, {95, 97.2, 93.3});
  one.machine = MachineChange{.base = {.foreign_cpu = 0.31}, .fresh = {.foreign_cpu = 0.04}};
  EXPECT_THAT(verdict_sentence(one),
              HasSubstr("; something else took 31 % of the processors during base and 4 % during"));
  one.machine->base.foreign_cpu = 0.02;
  EXPECT_THAT(verdict_sentence(one), Not(HasSubstr("something else")));
}

TEST(VerificationTest, differences_come_from_every_pair) {
  std::vector<RecordedRun> base = {make_run({}), make_run({})}, fresh = base;
  fresh[1].config["overlap"] = "off";
  EXPECT_EQ(verify_runs(base, fresh, {}).differences.size(), 1u);
}

TEST(VerificationTest, sides_of_another_size_are_refused) {
  EXPECT_THROW(verify_runs({make_run({})}, {}, {}), core::ConfigError);
  EXPECT_THROW(verify_runs({}, {}, {}), core::ConfigError);
  EXPECT_THROW(verify_runs({make_run({.steps = 2})}, {make_run({})}, {.warm_up = 3}),
               core::DataError);
}

TEST(VerificationTest, runs_that_cannot_be_compared_are_refused_unless_forced) {
  std::vector<RecordedRun> base = {make_run({}), make_run({})}, fresh = base;
  fresh[1].config["sequence-length"] = "64";
  EXPECT_THROW(verify_runs(base, fresh, {}), core::ConfigError);
  EXPECT_EQ(verify_runs(base, fresh, {.force = true}).differences.size(), 1u);
  fresh[1] = base[1];
  fresh[1].environment["build"] = "another";
  EXPECT_THROW(verify_runs(base, fresh, {}), core::ConfigError);
}

TEST(VerificationTest, another_learning_rate_withholds_convergence) {
  std::vector<RecordedRun> base = {make_run({}), make_run({})}, fresh = base;
  for (RecordedRun& run : fresh) run.config["lr"] = "1";

  const ConvergenceResult convergence = verify_runs(base, fresh, {}).convergence;

  EXPECT_EQ(convergence.verdict, Convergence::kNotMeasured);
  EXPECT_EQ(convergence.reason, "the two sides differ in what they learn, or how");
  ASSERT_TRUE(convergence.final_val_loss) << "the figures are there, without a judgement";
  EXPECT_EQ(convergence.final_val_loss->verdict, Convergence::kNotMeasured);

  fresh[0].steps.back().loss = NAN;
  EXPECT_EQ(decide(verify_runs(base, fresh, {}), {}).code, GateCode::kDiverged);
}

TEST(VerificationReportTest, json_has_every_key_and_the_same_figures) {
  const Verification one = verification_of({100, 102, 98}, {80, 81, 79});
  const auto json = nlohmann::json::parse(verification_json(one, decide(one, {})));

  EXPECT_EQ(json.at("kind"), "verification");
  EXPECT_DOUBLE_EQ(json.at("step_time").at("ratio_low"), one.step_time->low);
  EXPECT_EQ(json.at("blocks").size(), 3u);
  // exp of scipy.stats.t.interval(0.95, 2, ...) of the logarithms
  EXPECT_NEAR(json.at("step_time").at("base_low_ms"), 95.1397, 1e-4);
  EXPECT_NEAR(json.at("step_time").at("new_high_ms"), 82.5190, 1e-4);
  EXPECT_EQ(json.at("differences").at(0).at("field"), "overlap");
  EXPECT_EQ(json.at("convergence").at("verdict"), "identical");
  EXPECT_EQ(json.at("decision").at("accepted"), true);
  EXPECT_EQ(json.at("memory").at("new_bytes"), 1'000'000);
  const auto& curve = json.at("curves").at("new").at(0);
  ASSERT_EQ(curve.at("loss").size(), 20u);
  EXPECT_EQ(curve.at("loss").at(4).at(0), 5);
  EXPECT_DOUBLE_EQ(curve.at("loss").at(4).at(1).get<double>(),
                   one.fresh_curves[0].training[4].loss);
  EXPECT_EQ(curve.at("val_loss").at(0).at(0), 20);
}

TEST(VerificationReportTest, text_fits_into_100_columns) {
  const Verification one = verification_of({100, 102, 98}, {80, 81, 79}, {.loss_offset = 0.01});
  const std::string text = verification_text(one, decide(one, {}), {.width_columns = 100});

  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(text, HasSubstr("Decision: accepted"));
  EXPECT_THAT(text, HasSubstr("rest: forward, backward, optimizer"));
}

TEST(VerificationReportTest, markdown_has_verdict_tables_and_command) {
  const Verification one = verification_of({100, 102, 98}, {80, 81, 79});
  const std::string text = verification_markdown(one, decide(one, {}));

  EXPECT_THAT(text, HasSubstr("# Base against new: faster"));
  EXPECT_THAT(
      text,
      HasSubstr("base 100 ms (95 % interval of the geometric mean 95.14 to 105.1 ms), new 80 ms"));
  EXPECT_THAT(text, HasSubstr("| part | base, ms | new, ms | change, ms |"));
  EXPECT_THAT(text, HasSubstr("```\nverify\n```"));
}

TEST(VerificationTest, steps_that_take_no_time_are_a_fault_of_their_file) {
  try {
    verification_of({100, 100}, {0, 100});
    FAIL() << "nothing is 100 % faster";
  } catch (const core::DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("run/metrics.jsonl: expected steps that take time"));
  }
}

}  // namespace
}  // namespace sidestream::verify
