// Steps as they run on a GPU, on a machine without one, against the steps of the processor.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/device/nccl_communicator.hpp"
#include "comm/single_communicator.hpp"
#include "launch/device/device_step_runner.hpp"
#include "launch/process/agreement.hpp"
#include "launch/trainer/step_runner.hpp"
#include "tests/comm/device/fake_nccl.hpp"
#include "tests/comm/device/scripted_host.hpp"
#include "tests/core/optim/host_kernels.hpp"

namespace sidestream::launch {
namespace {

constexpr std::int64_t kBatch = 4, kLength = 16, kSteps = 6, kMicroSteps = 2;

model::ModelConfig tiny_model() {
  model::ModelConfig config = model::preset("gpt2-tiny");
  config.fused_ops = model::FusedOps::kOff;
  return config;
}

struct DeviceStepTest : testing::Test {
  std::shared_ptr<comm::cuda::FakeDriver> driver = std::make_shared<comm::cuda::FakeDriver>();
  std::shared_ptr<comm::nccl::FakeNccl> api = std::make_shared<comm::nccl::FakeNccl>(driver);
  comm::Stream compute = driver->create_stream(comm::cuda::Priority::kNormal);
  parallel::CurrentStream current_stream = [this] { return compute; };
  comm::NcclCommunicator communicator{
      std::make_unique<comm::ScriptedHost>(1), {.driver = driver}, api, {}};
  parallel::DataParallelConfig training{.grad_accumulation = kMicroSteps};
  StepRunnerConfig config{
      .seed = 3,
      .grad_accumulation = kMicroSteps,
      .sequence_length = kLength,
      .schedule = {.kind = optim::ScheduleKind::kConstant, .lr = 1e-2, .steps = kSteps}};

  static std::shared_ptr<model::LanguageModel> new_model() {
    auto model = model::make_language_model(tiny_model());
    model->initialise(1);
    return model;
  }
  static std::unique_ptr<data::Loader> new_loader() {
    return std::make_unique<data::Loader>(
        data::LoaderConfig{.batch_size = kBatch,
                           .sequence_length = kLength,
                           .grad_accumulation = kMicroSteps,
                           .max_held = DeviceFeed::kBatchesHeld},
        std::make_shared<data::SyntheticSource>(static_cast<std::uint64_t>(tiny_model().vocab_size),
                                                7));
  }
};

// Everything that a run on the device needs.
struct DeviceRun {
  DeviceRun(DeviceStepTest& test, std::function<bool(std::int64_t)> is_due)
      : replicas(*model, test.communicator, test.training,
                 {.kernels = std::make_shared<optim::HostKernels>(),
                  .current_stream = test.current_stream}),
        feed(*loader, test.driver, {.batch_size = kBatch, .sequence_length = kLength},
             test.current_stream),
        steps({.model = *model,
               .replicas = replicas,
               .feed = feed,
               .communicator = test.communicator,
               .driver = test.driver,
               .current_stream = test.current_stream},
              test.config, std::move(is_due)) {}

  std::shared_ptr<model::LanguageModel> model = DeviceStepTest::new_model();
  std::unique_ptr<data::Loader> loader = DeviceStepTest::new_loader();
  parallel::DataParallel replicas;
  DeviceFeed feed;
  DeviceStepRunner steps;
};

bool never(std::int64_t) { return false; }
bool always(std::int64_t) { return true; }
bool no_stop() { return false; }

TEST_F(DeviceStepTest, losses_and_norms_are_those_of_the_processor) {
  comm::SingleCommunicator alone;
  const auto model = new_model();
  const auto loader = new_loader();
  parallel::DataParallel replicas(*model, alone, training);
  StepRunner host(*model, replicas, *loader, alone, config);
  DeviceRun device(*this, always);

  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const StepOutcome expected = host.run(step, no_stop);
    const StepOutcome found = device.steps.run(step, no_stop);
    EXPECT_NEAR(found.loss, expected.loss, 1e-6);
    EXPECT_EQ(found.grad_norm, expected.grad_norm);
    EXPECT_EQ(found.lr, expected.lr);
  }
}

// As far as the host may be ahead, batches included: no step asks the device for anything.
TEST_F(DeviceStepTest, step_waits_for_nothing_on_the_device_in_any_toggle) {
  using parallel::GradientSync;
  using parallel::OptimizerKernel;
  for (const GradientSync sync :
       {GradientSync::kPerParameter, GradientSync::kBucketed, GradientSync::kOverlapped}) {
    for (const auto kernel : {OptimizerKernel::kFused, OptimizerKernel::kUnfused}) {
      training.gradient_sync = sync;
      training.optimizer.kernel = kernel;
      DeviceRun device(*this, never);
      const int synchronizations = driver->synchronizations;
      driver->hold();  // the device makes no progress

      for (std::int64_t step = 1; step <= 2; ++step) {
        EXPECT_TRUE(std::isnan(device.steps.run(step, no_stop).grad_norm));
        if (step == 1) driver->release();
      }

      EXPECT_EQ(driver->synchronizations, synchronizations);
    }
  }
}

TEST_F(DeviceStepTest, plain_optimizer_has_the_losses_and_norms_of_the_fused_one) {
  DeviceRun fused(*this, always);
  training.optimizer.kernel = parallel::OptimizerKernel::kUnfused;
  DeviceRun plain(*this, always);

  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const StepOutcome expected = fused.steps.run(step, no_stop);
    const StepOutcome found = plain.steps.run(step, no_stop);
    EXPECT_NEAR(found.loss, expected.loss, 1e-5);
    EXPECT_NEAR(found.grad_norm, expected.grad_norm, 1e-4 * expected.grad_norm);
  }
}

TEST_F(DeviceStepTest, numbers_and_votes_come_when_they_are_due_every_tenth_step_at_least) {
  DeviceRun device(*this, [](std::int64_t step) { return step == 3; });
  int asked = 0;
  std::vector<std::int64_t> stopped_at;

  for (std::int64_t step = 1; step <= 10; ++step) {
    const StepOutcome outcome = device.steps.run(step, [&] {
      ++asked;
      return true;
    });
    if (outcome.stop_requested) stopped_at.push_back(step);
  }

  EXPECT_EQ(asked, 2);
  EXPECT_EQ(stopped_at, (std::vector<std::int64_t>{3, 10}));
}

TEST_F(DeviceStepTest, norm_that_is_not_finite_ends_the_run_with_the_number_of_its_step) {
  DeviceRun device(*this, [](std::int64_t step) { return step == 4; });
  device.steps.run(1, no_stop);
  {
    const torch::NoGradGuard no_grad;
    auto weight = device.model->parameters().front();
    weight.view(-1)[0] = NAN;
  }
  device.steps.run(2, no_stop);
  device.steps.run(3, no_stop);

  const StepOutcome outcome = device.steps.run(4, no_stop);

  ASSERT_TRUE(outcome.anomaly);
  EXPECT_EQ(outcome.anomaly->text(), "step 2: the gradient norm is not finite");
  EXPECT_FALSE(outcome.updated);
}

// Losses, norms and scales of the processor, with a step that overflows, whoever looks when.
TEST_F(DeviceStepTest, fp16_steps_are_those_of_the_processor) {
  training.parameter_dtype = core::DType::kFloat16;
  training.loss_scale = {.kind = optim::LossScaling::kDynamic, .scale = 1024, .interval = 2};
  config.loss_scale = training.loss_scale;
  for (const auto policy : {AnomalyPolicy::kStop, AnomalyPolicy::kSkip}) {
    const auto start = [&] {
      config.faults = std::make_shared<faults::FaultInjector>(
          faults::parse_faults("inf-grad:step=3"), faults::Victim{});
      config.judge = std::make_shared<AnomalyJudge>(NumericsOptions{.nan_policy = policy});
    };
    comm::SingleCommunicator alone;
    const auto model = new_model();
    const auto loader = new_loader();
    parallel::DataParallel replicas(*model, alone, training);
    model->expect_loss_scale(replicas.loss_scale());
    start();
    StepRunner host(*model, replicas, *loader, alone, config);
    start();
    DeviceRun device(*this, always);
    device.model->expect_loss_scale(device.replicas.loss_scale());

    for (std::int64_t step = 1; step <= kSteps; ++step) {
      const StepOutcome expected = host.run(step, no_stop);
      const StepOutcome found = device.steps.run(step, no_stop);
      EXPECT_FALSE(found.anomaly) << step;
      EXPECT_NEAR(found.loss, expected.loss, 1e-6) << step;
      EXPECT_TRUE(found.grad_norm == expected.grad_norm || step == 3) << step;
      EXPECT_EQ(device.replicas.loss_scale_state(), replicas.loss_scale_state()) << step;
    }
    EXPECT_EQ(replicas.loss_scale_state().left_out, 1);
  }
}

TEST_F(DeviceStepTest, fp16_step_that_is_left_out_is_said_when_somebody_looks) {
  training.loss_scale = {.kind = optim::LossScaling::kDynamic, .scale = 1024};
  config.loss_scale = training.loss_scale;
  config.faults = std::make_shared<faults::FaultInjector>(
      faults::parse_faults("inf-grad:step=2;inf-grad:step=3"), faults::Victim{});
  DeviceRun device(*this, [](std::int64_t step) { return step == 5; });

  for (std::int64_t step = 1; step <= 4; ++step)
    EXPECT_EQ(device.steps.run(step, no_stop).news, "");
  const StepOutcome outcome = device.steps.run(5, no_stop);

  EXPECT_EQ(outcome.news,
            "by step 5: gradients were not finite in fp16: 2 updates are left out, the loss scale "
            "is 256 now");
  EXPECT_EQ(outcome.loss_scale->left_out, 2);
  EXPECT_FALSE(outcome.anomaly);
}

TEST_F(DeviceStepTest, fp16_gradients_not_finite_at_the_least_scale_are_an_anomaly) {
  training.loss_scale = {.kind = optim::LossScaling::kDynamic, .scale = 1};
  config.loss_scale = training.loss_scale;
  for (const auto policy : {AnomalyPolicy::kStop, AnomalyPolicy::kSkip}) {
    config.faults = std::make_shared<faults::FaultInjector>(faults::parse_faults("inf-grad:step=2"),
                                                            faults::Victim{});
    config.judge = std::make_shared<AnomalyJudge>(NumericsOptions{.nan_policy = policy});
    DeviceRun device(*this, always);
    device.steps.run(1, no_stop);

    const StepOutcome outcome = device.steps.run(2, no_stop);

    ASSERT_TRUE(outcome.anomaly);
    EXPECT_EQ(outcome.anomaly->kind, Anomaly::Kind::kLossScaleTooSmall);
    EXPECT_EQ(outcome.anomaly->values.least_loss_scale, 1);
    EXPECT_FALSE(outcome.updated);
  }
}

// The host looks first: the step leaves no trace, and the steps after it are those of the
// processor.
TEST_F(DeviceStepTest, update_that_is_left_out_changes_nothing) {
  const auto run_with = [this](auto make_steps) {
    config.faults = std::make_shared<faults::FaultInjector>(
        faults::parse_faults("nan:step=3; nan:step=5"), faults::Victim{});
    config.judge =
        std::make_shared<AnomalyJudge>(NumericsOptions{.nan_policy = AnomalyPolicy::kSkip});
    std::vector<StepOutcome> outcomes;
    make_steps([&](Stepper& steps) {
      for (std::int64_t step = 1; step <= kSteps; ++step)
        outcomes.push_back(steps.run(step, no_stop));
    });
    return outcomes;
  };
  comm::SingleCommunicator alone;
  const auto on_host = run_with([&](const auto& take) {
    const auto model = new_model();
    const auto loader = new_loader();
    parallel::DataParallel replicas(*model, alone, training);
    StepRunner steps(*model, replicas, *loader, alone, config);
    take(steps);
  });
  for (const auto kernel :
       {parallel::OptimizerKernel::kFused, parallel::OptimizerKernel::kUnfused}) {
    training.optimizer.kernel = kernel;
    const auto on_device = run_with([&](const auto& take) {
      DeviceRun device(*this, never);
      take(device.steps);
    });

    for (std::size_t i = 0; i < on_host.size(); ++i) {
      EXPECT_EQ(on_device[i].updated, i != 2 && i != 4) << i;
      EXPECT_EQ(on_device[i].updated, on_host[i].updated) << i;
      ASSERT_EQ(on_device[i].anomaly.has_value(), on_host[i].anomaly.has_value()) << i;
      if (on_host[i].anomaly) {
        EXPECT_EQ(on_device[i].anomaly->text(), on_host[i].anomaly->text());
        continue;
      }
      EXPECT_NEAR(on_device[i].loss, on_host[i].loss, 1e-5) << i;
      EXPECT_NEAR(on_device[i].grad_norm, on_host[i].grad_norm, 1e-4 * on_host[i].grad_norm) << i;
    }
  }
}

}  // namespace
}  // namespace sidestream::launch
