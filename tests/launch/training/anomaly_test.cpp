#include "launch/trainer/anomaly.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "launch/trainer/incident.hpp"

namespace sidestream::launch {
namespace {

using enum AnomalyPolicy;

AnomalyJudge judge_with_history(const NumericsOptions& options) {
  AnomalyJudge judge(options);
  for (std::int64_t step = 1; step <= 128; ++step)
    judge.judge({.step = step, .loss = step % 2 == 0 ? 2.0 : 3.0, .grad_norm = 1.0 + step % 2});
  return judge;
}

TEST(AnomalyTest, judge_lossOfARankBeforeNorm) {
  AnomalyJudge judge;

  const auto judgement =
      judge.judge({.step = 5, .loss = NAN, .grad_norm = INFINITY, .bad_rank = 2});

  ASSERT_TRUE(judgement.anomaly);
  EXPECT_EQ(judgement.anomaly->text(), "step 5: the loss of rank 2 is not finite");
  EXPECT_FALSE(judgement.update);
  EXPECT_EQ(judge.policy_for(*judgement.anomaly), kStop);
}

TEST(AnomalyTest, judge_normNotFinite) {
  AnomalyJudge judge({.nan_policy = kSkip});

  const auto judgement = judge.judge({.step = 5, .loss = 1, .grad_norm = INFINITY});

  EXPECT_EQ(judgement.anomaly->text(), "step 5: the gradient norm is not finite");
  EXPECT_EQ(judge.policy_for(*judgement.anomaly), kSkip);
  EXPECT_TRUE(judge.losses().values().empty()) << "what is left out is no measure";
}

TEST(AnomalyTest, judge_spikesUpwardsOnly) {
  AnomalyJudge judge = judge_with_history({.spike_policy = kSkip, .spike_zscore = 5});

  EXPECT_FALSE(judge.judge({.step = 129, .loss = 4.9, .grad_norm = 1}).anomaly);
  EXPECT_FALSE(judge.judge({.step = 130, .loss = -50, .grad_norm = 1}).anomaly);
}

TEST(AnomalyTest, judge_aSpikeOfTheLoss) {
  AnomalyJudge judge = judge_with_history({.spike_policy = kSkip, .spike_zscore = 5});

  const auto judgement = judge.judge({.step = 129, .loss = 5.5, .grad_norm = 1});

  ASSERT_TRUE(judgement.anomaly);
  EXPECT_EQ(judgement.anomaly->kind, Anomaly::Kind::kLossSpike);
  EXPECT_DOUBLE_EQ(judgement.anomaly->zscore, 6);
  EXPECT_FALSE(judgement.update);
}

TEST(AnomalyTest, judge_aSpikeOfTheNormWarns) {
  AnomalyJudge judge = judge_with_history({});

  const auto judgement = judge.judge({.step = 129, .loss = 2, .grad_norm = 100});

  EXPECT_EQ(judgement.anomaly->kind, Anomaly::Kind::kNormSpike);
  EXPECT_TRUE(judgement.update);
  EXPECT_EQ(judge.norms().values().back(), 100) << "what is used is a measure";
}

TEST(AnomalyTest, judge_anEarlySpikeWarnsWhateverThePolicy) {
  AnomalyJudge judge({.spike_policy = kStop});
  for (std::int64_t step = 1; step <= 40; ++step)
    judge.judge({.step = step, .loss = step % 2 == 0 ? 2.0 : 3.0, .grad_norm = 1.0 + step % 2});

  EXPECT_FALSE(judge.judge({.step = 41, .loss = 2.5 + 0.5 * 9, .grad_norm = 1}).anomaly)
      << "9 deviations, of few values";
  const auto judgement = judge.judge({.step = 42, .loss = 100, .grad_norm = 1});

  ASSERT_TRUE(judgement.anomaly);
  EXPECT_TRUE(judgement.update);
  EXPECT_EQ(judge.policy_for(*judgement.anomaly), kWarn);
  EXPECT_TRUE(judgement.anomaly->text().ends_with(
      "above the last 41 steps, counted for less because they are few"))
      << judgement.anomaly->text();
}

TEST(AnomalyTest, judge_offLooksForNoSpike) {
  AnomalyJudge judge = judge_with_history({.spike_policy = kOff});

  EXPECT_FALSE(judge.judge({.step = 129, .loss = 1e9, .grad_norm = 1e9}).anomaly);
}

TEST(IncidentTest, incident_samplesOfEveryRank) {
  const Anomaly anomaly{.values = {.step = 3, .loss = NAN, .grad_norm = 2, .bad_rank = 1}};
  const data::SampleOrder order{.samples = 10, .shuffle = data::Shuffle::kOff};

  const auto incident =
      incident_of(anomaly, kStop,
                  {.first_index = 16, .batch_size = 2, .grad_accumulation = 2, .ranks = 2}, order);

  EXPECT_EQ(incident["samples"].dump(), "[[6,7,0,1],[8,9,2,3]]");
  EXPECT_EQ(incident["rank"], 1);
  EXPECT_TRUE(incident["loss"].is_null());
  EXPECT_EQ(incident["grad_norm"], 2);
  EXPECT_TRUE(incident["zscore"].is_null());
}

}  // namespace
}  // namespace sidestream::launch
