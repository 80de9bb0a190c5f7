#include "profiling/verify/input_proof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profiling/verify/verification_report.hpp"
#include "tests/profiling/verify/run_maker.hpp"

namespace sidestream::verify {
namespace {

using ::testing::HasSubstr;

Verification on_one_batch(double fixed_ms) {
  std::vector<RecordedRun> base, fixed;
  for (int seed = 1; seed <= 3; ++seed) {
    base.push_back(make_run({.step_ms = 100.0 + 0.3 * seed, .seed = seed}));
    fixed.push_back(make_run({.step_ms = fixed_ms + 0.1 * seed, .seed = seed}));
    fixed.back().config["fix-batch"] = "on";
  }
  return verify_runs(base, fixed, {});
}

TEST(InputProofTest, a_shorter_step_is_what_the_input_costs) {
  const InputProof proof = input_proof("The loader does not keep up", 32.0, on_one_batch(70));

  EXPECT_LT(proof.step_time.value().high, 1);
  EXPECT_THAT(proof_sentence(proof), HasSubstr("\"The loader does not keep up\", at most 32.0 %"));
  EXPECT_THAT(proof_sentence(proof), HasSubstr("is what the input costs"));
}

TEST(InputProofTest, the_same_step_refutes_the_advice) {
  const InputProof proof = input_proof("The loader does not keep up", {}, on_one_batch(100.2));

  EXPECT_THAT(proof.reason, HasSubstr("input does not bound it"));
}

TEST(InputProofTest, an_interval_that_holds_a_gain_leaves_it_open) {
  Verification runs = on_one_batch(100.2);
  runs.step_time->low = 0.3;
  runs.step_time->high = 4;

  EXPECT_THAT(decide(runs, {}).reason, HasSubstr("leaves open whether the input bounds it"));
}

TEST(InputProofTest, the_report_of_a_verification_has_it) {
  Verification one = on_one_batch(100);
  one.proof = input_proof("x", 10.0, on_one_batch(80));
  const auto json = nlohmann::json::parse(verification_json(one, decide(one, {})));

  EXPECT_EQ(json.at("proof").at("gain_ceiling_pct"), 10.0);
  EXPECT_EQ(json.at("proof").at("blocks").size(), 3u);
  EXPECT_LT(json.at("proof").at("ratio_high").get<double>(), 1);
}

}  // namespace
}  // namespace sidestream::verify
