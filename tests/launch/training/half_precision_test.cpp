// Steps in fp16 with a dynamic loss scale, as ranks on processors could take them: the program
// leaves these to GPUs, but the steps, the agreement of the ranks and the checkpoints are the same.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/checkpoint/find_checkpoint.hpp"
#include "launch/trainer/checkpointed_language_model.hpp"
#include "launch/trainer/checkpointer.hpp"
#include "launch/trainer/step_runner.hpp"
#include "tests/parallel/thread_communicator.hpp"

namespace sidestream::launch {
namespace {

using test::run_ranks;
using test::ThreadCommunicator;

constexpr std::int64_t kBatch = 4, kLength = 16, kMicroSteps = 2;
constexpr optim::LossScaleConfig kDynamic{
    .kind = optim::LossScaling::kDynamic, .scale = 4096, .interval = 4};

model::ModelConfig tiny_model() {
  model::ModelConfig config = model::preset("gpt2-tiny");
  config.loss_chunks = 3;
  return config;
}

struct RunOptions {
  core::DType dtype = core::DType::kFloat16;
  optim::LossScaleConfig loss_scale = kDynamic;
  std::string faults = {};
  NumericsOptions numerics = {};
  parallel::StateSharing sharing = parallel::StateSharing::kOff;
  std::uint64_t first_step = 1;
};

std::vector<faults::Fault> planted(const std::string& text) {
  return text.empty() ? std::vector<faults::Fault>() : faults::parse_faults(text);
}

// One rank's part of a run.
struct RankRun {
  RankRun(ThreadCommunicator& communicator, const RunOptions& options)
      : replicas(initialised(), communicator,
                 {.bucket_mb = 0.05,
                  .parameter_dtype = options.dtype,
                  .grad_accumulation = kMicroSteps,
                  .state_sharing = options.sharing,
                  .loss_scale = options.loss_scale}),
        loader({.batch_size = kBatch,
                .sequence_length = kLength,
                .grad_accumulation = kMicroSteps,
                .rank = static_cast<std::uint64_t>(communicator.rank()),
                .world_size = static_cast<std::uint64_t>(communicator.size()),
                .first_step = options.first_step},
               std::make_shared<data::SyntheticSource>(
                   static_cast<std::uint64_t>(tiny_model().vocab_size), 7)),
        steps(*model, replicas, loader, communicator,
              {.grad_accumulation = kMicroSteps,
               .sequence_length = kLength,
               .schedule = {.kind = optim::ScheduleKind::kConstant, .lr = 1e-2, .steps = 100},
               .loss_scale = options.loss_scale,
               .faults = std::make_shared<faults::FaultInjector>(
                   planted(options.faults), faults::Victim{.rank = communicator.rank()}),
               .judge = std::make_shared<AnomalyJudge>(options.numerics)}) {
    model->expect_loss_scale(replicas.loss_scale());
  }

  model::LanguageModel& initialised() {
    model->initialise(1);
    return *model;
  }
  StepNumbers step(std::int64_t number) {
    return steps.run(number, [] { return false; }).numbers.at(0);
  }
  std::vector<torch::Tensor> state() const {
    std::vector<torch::Tensor> all;
    for (const parallel::ParameterState& state : replicas.states()) {
      all.push_back(state.master.clone());
      for (const parallel::Moment& moment : state.moments) all.push_back(moment.tensor.clone());
    }
    return all;
  }

  std::shared_ptr<model::LanguageModel> model = model::make_language_model(tiny_model());
  parallel::DataParallel replicas;
  data::Loader loader;
  StepRunner steps;
};

bool same_bits(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return torch::equal(x, y); });
}

std::vector<double> losses_of(const RunOptions& options, int steps) {
  std::vector<double> losses;
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    RankRun run(communicator, options);
    for (int step = 1; step <= steps; ++step) {
      const StepNumbers outcome = run.step(step);
      if (communicator.rank() == 0) losses.push_back(outcome.loss);
    }
  });
  return losses;
}

TEST(HalfPrecisionTest, losses_are_near_those_of_fp32) {
  const auto fp32 = losses_of({.dtype = core::DType::kFloat32, .loss_scale = {}}, 12),
             fp16 = losses_of({}, 12);

  EXPECT_NE(fp16, fp32);
  EXPECT_GT(std::abs(fp32.back() - fp32.front()), 0.1) << "weights hardly move";
  for (std::size_t i = 0; i < fp32.size(); ++i) EXPECT_NEAR(fp16[i], fp32[i], 2e-2) << i;
}

TEST(HalfPrecisionTest, loss_scale_changes_no_bit_in_fp32) {
  const auto without = losses_of({.dtype = core::DType::kFloat32, .loss_scale = {}}, 6),
             with = losses_of({.dtype = core::DType::kFloat32}, 6);

  EXPECT_EQ(with, without);
}

TEST(HalfPrecisionTest, slices_of_the_state_have_the_same_losses) {
  const auto whole = losses_of({.faults = "nan:rank=1,step=3"}, 6),
             slices = losses_of(
                 {.faults = "nan:rank=1,step=3", .sharing = parallel::StateSharing::kSharded}, 6);

  ASSERT_TRUE(std::isnan(whole[2]));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i == 2) continue;
    EXPECT_EQ(slices[i], whole[i]) << i;
  }
}

TEST(HalfPrecisionTest, overflow_on_one_rank_is_said_and_left_out_on_both) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    RankRun run(communicator, {.faults = "nan:rank=1,step=3"});
    run.step(1);
    EXPECT_EQ(run.step(2).news.find("left out"), std::string::npos);
    const auto before = run.state();

    const StepNumbers outcome = run.step(3);

    EXPECT_FALSE(outcome.anomaly) << "it is no incident";
    EXPECT_TRUE(same_bits(run.state(), before));
    ASSERT_TRUE(outcome.loss_scale);
    EXPECT_EQ(outcome.loss_scale->scale, 2048);
    EXPECT_EQ(outcome.loss_scale->left_out, 1);
    EXPECT_NE(
        outcome.news.find("step 3: a gradient was not finite in fp16: its update is left out, "
                          "the loss scale is 2048 now"),
        std::string::npos)
        << outcome.news;
    EXPECT_TRUE(std::isfinite(run.step(4).grad_norm));
    EXPECT_FALSE(same_bits(run.state(), before));
  });
}

TEST(HalfPrecisionTest, gradients_that_are_not_finite_at_any_scale_end_the_run) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    RankRun run(communicator, {.loss_scale = {.kind = optim::LossScaling::kDynamic, .scale = 2},
                               .faults = "nan:rank=0,step=2;nan:rank=0,step=3"});
    run.step(1);
    const auto before = run.state();

    EXPECT_FALSE(run.step(2).anomaly);
    const StepNumbers outcome = run.step(3);

    ASSERT_TRUE(outcome.anomaly);
    EXPECT_EQ(outcome.anomaly->kind, Anomaly::Kind::kLossScaleTooSmall);
    EXPECT_FALSE(outcome.updated);
    EXPECT_TRUE(same_bits(run.state(), before));
  });
}

TEST(HalfPrecisionTest, fixed_scale_leaves_what_is_not_finite_to_the_policy) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    RankRun run(communicator, {.loss_scale = {.kind = optim::LossScaling::kFixed, .scale = 256},
                               .faults = "nan:rank=1,step=2",
                               .numerics = {.nan_policy = AnomalyPolicy::kSkip}});
    run.step(1);

    const StepNumbers outcome = run.step(2);

    ASSERT_TRUE(outcome.anomaly);
    EXPECT_EQ(outcome.anomaly->kind, Anomaly::Kind::kLossNotFinite);
    EXPECT_EQ(outcome.loss_scale->scale, 256);
  });
}

class CheckpointsInHalfPrecisionTest : public testing::Test {
 protected:
  CheckpointsInHalfPrecisionTest() { std::filesystem::create_directories(folder_); }
  ~CheckpointsInHalfPrecisionTest() override { std::filesystem::remove_all(folder_); }

  // Seven steps of which the third overflows, saved after the fifth.
  TrainingState train_and_save(RankRun& run, ThreadCommunicator& communicator) const {
    for (int step = 1; step <= 5; ++step) run.step(step);
    TrainingState state{.step = 5, .bucket_order = run.replicas.bucket_order()};
    state.loss_scale = run.replicas.loss_scale_state();
    Checkpointer(config(), communicator, run.replicas).save(state, Meanwhile::kWaiting);
    for (int step = 6; step <= 7; ++step) run.step(step);
    return state;
  }
  CheckpointerConfig config() const {
    return {.folder = folder_, .model = std::make_shared<CheckpointedLanguageModel>(tiny_model())};
  }
  TrainingState restore(RankRun& run, ThreadCommunicator& communicator) const {
    std::vector<std::string> notes;
    return Checkpointer(config(), communicator, run.replicas)
        .restore(checkpoint::find_checkpoint(folder_).checkpoint, notes);
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("half_precision_test_" + std::to_string(getpid()));
};

constexpr const char* kOverflow = "nan:rank=1,step=3";

TEST_F(CheckpointsInHalfPrecisionTest, resumed_run_has_the_same_bits) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    RankRun whole(communicator, {.faults = kOverflow}), rest(communicator, {.first_step = 6});
    const TrainingState saved = train_and_save(whole, communicator);

    const TrainingState restored = restore(rest, communicator);
    for (int step = 6; step <= 7; ++step) rest.step(step);

    EXPECT_EQ(restored.loss_scale, saved.loss_scale);
    EXPECT_EQ(restored.loss_scale->left_out, 1);
    EXPECT_TRUE(same_bits(rest.state(), whole.state()));
    EXPECT_EQ(rest.replicas.loss_scale_state(), whole.replicas.loss_scale_state());
  });
}

TEST_F(CheckpointsInHalfPrecisionTest, run_without_a_loss_scale_counts_what_was_left_out) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    RankRun half(communicator, {.faults = kOverflow});
    train_and_save(half, communicator);
    RankRun wide(communicator, {.dtype = core::DType::kFloat32, .loss_scale = {}});

    const TrainingState restored = restore(wide, communicator);

    EXPECT_EQ(restored.skipped, 1);
    EXPECT_FALSE(restored.loss_scale);
    EXPECT_EQ(wide.replicas.steps_taken(), 4);
  });
}

TEST_F(CheckpointsInHalfPrecisionTest, checkpoint_without_a_loss_scale_starts_one) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    RankRun wide(communicator, {.dtype = core::DType::kFloat32, .loss_scale = {}});
    wide.step(1);
    Checkpointer(config(), communicator, wide.replicas)
        .save({.step = 1, .bucket_order = wide.replicas.bucket_order()}, Meanwhile::kWaiting);
    RankRun half(communicator, {});

    restore(half, communicator);

    EXPECT_EQ(half.replicas.steps_taken(), 1);
    EXPECT_EQ(half.replicas.loss_scale_state(), (optim::LossScaleState{.scale = 4096}));
  });
}

}  // namespace
}  // namespace sidestream::launch
