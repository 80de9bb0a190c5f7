#include "launch/trainer/anomaly.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "launch/trainer/incident.hpp"
#include "launch/trainer/loss_scale_news.hpp"
#include "launch/trainer/training_state.hpp"

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

TEST(AnomalyTest, judge_gradientsNotFiniteAtTheLeastLossScale) {
  AnomalyJudge judge;

  const auto judgement =
      judge.judge({.step = 5, .loss = NAN, .grad_norm = NAN, .bad_rank = 1, .least_loss_scale = 1});

  ASSERT_TRUE(judgement.anomaly);
  EXPECT_EQ(judgement.anomaly->name(), "loss-scale-too-small");
  EXPECT_EQ(judge.policy_for(*judgement.anomaly), kStop);
  EXPECT_EQ(judgement.anomaly->text(),
            "step 5: the gradient norm is not finite at a loss scale of 1, and half of that would "
            "be less than 1");
  EXPECT_NE(stop_text(*judgement.anomaly).find("--precision bf16"), std::string::npos);
}

TEST(LossScaleNewsTest, of_saysWhatHasBeenLeftOutSinceTheLastCall) {
  LossScaleNews news({.scale = 4096, .left_out = 7});
  news.begin(1);

  EXPECT_EQ(news.of(1, {.scale = 4096, .good_steps = 1, .left_out = 7}), "");
  EXPECT_EQ(news.of(2, {.scale = 2048, .left_out = 8}),
            "step 2: a gradient was not finite in fp16: its update is left out, the loss scale is "
            "2048 now");
  EXPECT_EQ(news.of(3, {.scale = 2048, .good_steps = 1, .left_out = 8}), "");
  EXPECT_EQ(news.of(10, {.scale = 1024, .left_out = 9}),
            "by step 10: a gradient was not finite in fp16: its update is left out, the loss scale "
            "is 1024 now");
  EXPECT_EQ(news.of(20, {.scale = 256, .left_out = 11}),
            "by step 20: gradients were not finite in fp16: 2 updates are left out, the loss scale "
            "is 256 now");
}

TEST(LossScaleNewsTest, of_namesTheFirstStepOfAResumedRun) {
  LossScaleNews news({.scale = 4096, .left_out = 7});
  news.begin(11);
  news.begin(12);  // is under way before anybody looks at the one before

  EXPECT_THAT(news.of(11, {.scale = 2048, .left_out = 8}), testing::StartsWith("step 11: "));
  EXPECT_THAT(news.of(12, {.scale = 1024, .left_out = 9}), testing::StartsWith("step 12: "));
}

TEST(LossScaleNewsTest, of_severalStepsOfAResumedRunNamesTheirLast) {
  LossScaleNews news({.scale = 4096});
  news.begin(11);

  EXPECT_THAT(news.of(15, {.scale = 2048, .left_out = 1}), testing::StartsWith("by step 15: "));
}

TEST(TrainingStateTest, lossScale_comesBackAsItWas) {
  TrainingState state{.step = 9, .skipped = 1};
  state.loss_scale = optim::LossScaleState{.scale = 32768, .good_steps = 5, .left_out = 2};

  const TrainingState again = training_state_from(to_json(state));

  EXPECT_EQ(again.loss_scale, state.loss_scale);
}

TEST(TrainingStateTest, lossScale_isNotInOlderCheckpointsNorInThoseOfOtherPrecisions) {
  nlohmann::json json = to_json(TrainingState{.step = 9});

  EXPECT_FALSE(json.contains("loss_scale"));
  EXPECT_FALSE(training_state_from(json).loss_scale.has_value());
}

TEST(TrainingStateTest, lossScale_thatCannotBeUsedIsRefused) {
  TrainingState state{.step = 9};
  state.loss_scale = optim::LossScaleState{.scale = 32768, .good_steps = 5, .left_out = 2};
  for (const auto& [field, value] :
       {std::pair{"scale", nlohmann::json(0)}, std::pair{"scale", nlohmann::json(nullptr)},
        std::pair{"scale", nlohmann::json(1e300)}, std::pair{"scale", nlohmann::json(3.5e38)},
        std::pair{"good_steps", nlohmann::json(-1)}, std::pair{"left_out", nlohmann::json("2")},
        std::pair{"left_out", nlohmann::json(1e300)}}) {
    nlohmann::json json = to_json(state);
    json["loss_scale"][field] = value;
    EXPECT_THROW(training_state_from(json), core::CheckpointError) << field << value;
  }
}

TEST(TrainingStateTest, counts_thatAreNoneOrDoNotFitAreRefused) {
  for (const char* field : {"step", "samples", "samples_per_step", "sequence_length", "skipped"}) {
    for (const auto& value : {nlohmann::json(-1), nlohmann::json(4.7), nlohmann::json(1e300),
                              nlohmann::json("2"), nlohmann::json(nullptr)}) {
      nlohmann::json json = to_json(TrainingState{.step = 9});
      json[field] = value;
      EXPECT_THAT([&] { training_state_from(json); },
                  testing::ThrowsMessage<core::CheckpointError>(
                      testing::HasSubstr(std::string(" as ") + field + ", found")))
          << value;
    }
  }
}

TEST(TrainingStateTest, olderOne_doesNotKnowItsSequenceLength) {
  nlohmann::json json = to_json(TrainingState{.step = 9, .sequence_length = 32});
  EXPECT_EQ(training_state_from(json).sequence_length, 32u);

  json.erase("sequence_length");
  EXPECT_EQ(training_state_from(json).sequence_length, 0u);
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
