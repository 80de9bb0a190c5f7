// What one flag decides for several components is spread in one place.
#include "launch/assembly/assembly.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "launch/assembly/rank_plan.hpp"
#include "launch/assembly/stepper_assembly.hpp"
#include "model/config.hpp"

namespace sidestream::launch {
namespace {

TEST(AssemblyTest, communicatorConfig_hasTheDeadlinesOfTheRun) {
  TrainOptions options;
  options.timeouts.setup = std::chrono::seconds(7);
  options.timeouts.step = std::chrono::seconds(8);
  options.comm.shared_memory = false;

  const comm::CommunicatorConfig config = communicator_config(options);

  EXPECT_EQ(config.timeout_setup, std::chrono::seconds(7));
  EXPECT_EQ(config.timeout_collective, std::chrono::seconds(8));
  EXPECT_FALSE(config.shared_memory);
}

TEST(AssemblyTest, dataParallelConfig_hasTheTypeOfThePrecision) {
  TrainOptions options;

  options.precision = Precision::kBf16;
  EXPECT_EQ(data_parallel_config(options).parameter_dtype, core::DType::kBFloat16);
  options.precision = Precision::kFp32;
  EXPECT_EQ(data_parallel_config(options).parameter_dtype, core::DType::kFloat32);
}

TEST(AssemblyTest, dataParallelConfig_scalesTheLossOfFp16Only) {
  using optim::LossScaling;
  const auto config_of = [](Precision precision, const LossScaleOptions& scale) {
    TrainOptions options;
    options.precision = precision;
    options.loss_scale = scale;
    return data_parallel_config(options);
  };

  EXPECT_EQ(config_of(Precision::kBf16, {}).loss_scale.kind, LossScaling::kOff);
  const parallel::DataParallelConfig fp16 = config_of(Precision::kFp16, {.interval = 7});
  EXPECT_EQ(fp16.parameter_dtype, core::DType::kFloat16);
  EXPECT_EQ(fp16.loss_scale.kind, LossScaling::kDynamic);
  EXPECT_EQ(fp16.loss_scale.scale, 65536);
  EXPECT_EQ(fp16.loss_scale.interval, 7);
  const auto fixed = config_of(Precision::kFp16, {.scale = 128.0}).loss_scale;
  EXPECT_EQ(fixed.kind, LossScaling::kFixed);
  EXPECT_EQ(fixed.scale, 128);
}

TEST(AssemblyTest, scheduleConfig_hasWhatTheFlagsSay) {
  TrainOptions options;
  options.steps = 70;
  options.schedule = {.lr = 0.25, .min_lr_ratio = 0.5, .kind = "wsd", .warmup_steps = 9};

  const optim::ScheduleConfig config = schedule_config(options);

  EXPECT_EQ(config.kind, optim::ScheduleKind::kWsd);
  EXPECT_EQ(config.lr, 0.25);
  EXPECT_EQ(config.min_lr_ratio, 0.5);
  EXPECT_EQ(config.steps, 70);
  EXPECT_EQ(config.warmup_steps, 9);
}

// Nobody waits for a line: its numbers come while the next step runs.
TEST(AssemblyTest, lookAt_waitsForNumbersOnlyWhereSomethingIsDoneWithTheWeights) {
  TrainOptions options;
  options.steps = 20;
  options.evaluation.every = 6;
  options.checkpoint.every = 9;
  const auto steps_of = [&](Look wanted) {
    std::vector<std::int64_t> steps;
    for (std::int64_t step = 1; step <= options.steps; ++step)
      if (look_at(options, step) == wanted) steps.push_back(step);
    return steps;
  };

  const std::vector<std::int64_t> at_once = {6, 9, 12, 18, 20};
  EXPECT_EQ(steps_of(Look::kAtOnce), at_once);
  EXPECT_EQ(steps_of(Look::kLate).size(), 15u);
  options.log_every = 5;
  EXPECT_EQ(steps_of(Look::kAtOnce), at_once);
  EXPECT_EQ(steps_of(Look::kLate), (std::vector<std::int64_t>{1, 5, 10, 15}));
  options.late_loss = false;
  EXPECT_EQ(steps_of(Look::kAtOnce).size(), 20u);
}

TEST(AssemblyTest, savesBetween_areThoseBeforeTheLastStep) {
  const CheckpointOptions every_nine{.every = 9};
  EXPECT_TRUE(every_nine.saves_between(0, 10));
  EXPECT_FALSE(every_nine.saves_between(0, 9));
  EXPECT_FALSE(every_nine.saves_between(9, 18));
  EXPECT_TRUE(every_nine.saves_between(9, 19));
  EXPECT_FALSE(CheckpointOptions{}.saves_between(0, 100));
}

TEST(AssemblyTest, plan_ofFp16IsThatOfBf16) {
  TrainOptions options;
  options.model.preset = "gpt2-tiny";
  options.model.config = model::preset("gpt2-tiny");
  const auto device_bytes = [&](Precision precision) {
    options.precision = precision;
    return RankPlanner(options, {.ranks = 2}).plan(options).state_bytes();
  };
  const auto activation_bytes = [&](Precision precision) {
    options.precision = precision;
    return activations_of(options).peak();
  };

  EXPECT_EQ(device_bytes(Precision::kFp16), device_bytes(Precision::kBf16));
  EXPECT_EQ(activation_bytes(Precision::kFp16), activation_bytes(Precision::kBf16));
  EXPECT_LT(activation_bytes(Precision::kFp16), activation_bytes(Precision::kFp32));
}

TEST(AssemblyTest, dataParallelConfig_roundsWithTheSeedOfTheRun) {
  TrainOptions options;
  options.seed = 77;

  EXPECT_EQ(data_parallel_config(options).optimizer.rounding_seed, 77u);
}

TEST(AssemblyTest, dataParallelConfig_stateIsSlicedWhereNoMemoryIsShared) {
  using parallel::StateSharing;
  const auto sharing_of = [](StateSharing wanted, bool shared_memory, Device device) {
    TrainOptions options;
    options.parallel.state_sharing = wanted;
    options.comm.shared_memory = shared_memory;
    options.device = device;
    return data_parallel_config(options).state_sharing;
  };

  EXPECT_EQ(sharing_of(StateSharing::kOn, true, Device::kCpu), StateSharing::kOn);
  EXPECT_EQ(sharing_of(StateSharing::kOn, false, Device::kCpu), StateSharing::kSharded);
  EXPECT_EQ(sharing_of(StateSharing::kOn, true, Device::kCuda), StateSharing::kSharded);
  EXPECT_EQ(sharing_of(StateSharing::kAuto, false, Device::kCpu), StateSharing::kOff);
  EXPECT_EQ(sharing_of(StateSharing::kAuto, true, Device::kCpu), StateSharing::kAuto);
  EXPECT_EQ(sharing_of(StateSharing::kAuto, true, Device::kCuda), StateSharing::kOff);
}

}  // namespace
}  // namespace sidestream::launch
