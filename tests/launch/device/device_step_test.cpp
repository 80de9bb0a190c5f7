// Steps as they run on a GPU, on a machine without one, against the steps of the processor.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <thread>

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
  model::ModelConfig config = model::preset("gpt2-micro");
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
  DeviceRun(DeviceStepTest& test, DeviceStepRunner::LookAt look_at)
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
              test.config, std::move(look_at)) {}

  std::shared_ptr<model::LanguageModel> model = DeviceStepTest::new_model();
  std::unique_ptr<data::Loader> loader = DeviceStepTest::new_loader();
  parallel::DataParallel replicas;
  DeviceFeed feed;
  DeviceStepRunner steps;
};

void poison(const model::LanguageModel& model) {
  const torch::NoGradGuard no_grad;
  model.parameters().front().view(-1)[0] = NAN;
}

bool no_stop() { return false; }
Look never(std::int64_t) { return Look::kNone; }
Look late(std::int64_t) { return Look::kLate; }
Look at_once(std::int64_t) { return Look::kAtOnce; }
DeviceStepRunner::LookAt at_once_in(std::int64_t wanted) {
  return [wanted](std::int64_t step) { return step == wanted ? Look::kAtOnce : Look::kNone; };
}

// Of a step whose numbers come at once.
StepNumbers numbers_of(Stepper& steps, std::int64_t step) {
  const StepOutcome outcome = steps.run(step, no_stop);
  EXPECT_EQ(outcome.numbers.size(), 1u) << step;
  const StepNumbers* const numbers = outcome.numbers_of(step);
  return numbers != nullptr ? *numbers : StepNumbers{};
}

std::vector<std::int64_t> steps_in(const StepOutcome& outcome) {
  std::vector<std::int64_t> steps;
  for (const StepNumbers& numbers : outcome.numbers) steps.push_back(numbers.step);
  return steps;
}

TEST_F(DeviceStepTest, losses_and_norms_are_those_of_the_processor) {
  comm::SingleCommunicator alone;
  const auto model = new_model();
  const auto loader = new_loader();
  parallel::DataParallel replicas(*model, alone, training);
  StepRunner host(*model, replicas, *loader, alone, config);
  DeviceRun device(*this, at_once);

  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const StepOutcome expected = host.run(step, no_stop);
    const StepOutcome found = device.steps.run(step, no_stop);
    ASSERT_EQ(steps_in(found), steps_in(expected));
    EXPECT_NEAR(found.numbers[0].loss, expected.numbers[0].loss, 1e-6);
    EXPECT_EQ(found.numbers[0].grad_norm, expected.numbers[0].grad_norm);
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
        EXPECT_TRUE(device.steps.run(step, no_stop).numbers.empty());
        if (step == 1) driver->release();
      }

      EXPECT_EQ(driver->synchronizations, synchronizations);
    }
  }
}

TEST_F(DeviceStepTest, plain_optimizer_has_the_losses_and_norms_of_the_fused_one) {
  DeviceRun fused(*this, at_once);
  training.optimizer.kernel = parallel::OptimizerKernel::kUnfused;
  DeviceRun plain(*this, at_once);

  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const StepNumbers expected = numbers_of(fused.steps, step);
    const StepNumbers found = numbers_of(plain.steps, step);
    EXPECT_NEAR(found.loss, expected.loss, 1e-5);
    EXPECT_NEAR(found.grad_norm, expected.grad_norm, 1e-4 * expected.grad_norm);
  }
}

// With --log-every 1: the device is not left without work while the host looks.
TEST_F(DeviceStepTest, logged_step_is_read_behind_the_next_one) {
  training.grad_accumulation = config.grad_accumulation = 1;  // as far as batches are copied ahead
  DeviceRun device(*this, late);
  driver->hold();  // the device makes no progress
  EXPECT_TRUE(device.steps.run(1, no_stop).numbers.empty());
  const std::size_t queued = driver->count_of("all_reduce");

  auto second = std::async(std::launch::async, [&] { return device.steps.run(2, no_stop); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (driver->count_of("all_reduce") == queued && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();

  EXPECT_GT(driver->count_of("all_reduce"), queued) << "the host waits before it queues";
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  driver->release();
  EXPECT_EQ(steps_in(second.get()), std::vector<std::int64_t>{1});
  EXPECT_EQ(steps_in(device.steps.run(3, no_stop)), std::vector<std::int64_t>{2});
}

TEST_F(DeviceStepTest, late_numbers_are_those_of_looking_at_once) {
  DeviceRun prompt(*this, at_once);
  DeviceRun device(*this, [](std::int64_t step) { return step < kSteps ? late(1) : at_once(1); });
  std::vector<StepNumbers> found;

  for (std::int64_t step = 1; step <= kSteps; ++step) {
    for (const StepNumbers& numbers : device.steps.run(step, no_stop).numbers)
      found.push_back(numbers);
    EXPECT_EQ(std::ssize(found), step == kSteps ? kSteps : step - 1);
  }

  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const StepNumbers expected = numbers_of(prompt.steps, step);
    const StepNumbers& numbers = found.at(static_cast<std::size_t>(step) - 1);
    EXPECT_EQ(numbers.step, step);
    EXPECT_EQ(numbers.loss, expected.loss);
    EXPECT_EQ(numbers.grad_norm, expected.grad_norm);
  }
}

TEST_F(DeviceStepTest, numbers_and_votes_come_when_they_are_due_every_tenth_step_at_least) {
  DeviceRun device(*this, at_once_in(3));
  int asked = 0;
  std::vector<std::int64_t> looked_at;

  for (std::int64_t step = 1; step <= 11; ++step) {
    const StepOutcome outcome = device.steps.run(step, [&] {
      ++asked;
      return false;
    });
    for (const std::int64_t number : steps_in(outcome)) looked_at.push_back(number);
  }

  EXPECT_EQ(asked, 2);
  EXPECT_EQ(looked_at, (std::vector<std::int64_t>{3, 10}));
}

// Who saves the weights of this step wants to know first that they are good.
TEST_F(DeviceStepTest, step_in_which_the_ranks_agree_to_stop_has_its_numbers) {
  for (const auto& look : {DeviceStepRunner::LookAt(late), DeviceStepRunner::LookAt([](auto step) {
                             return step == 1 ? Look::kLate : Look::kNone;
                           })}) {
    DeviceRun device(*this, look);
    device.steps.run(1, no_stop);

    const StepOutcome outcome = device.steps.run(2, [] { return true; });

    EXPECT_TRUE(outcome.stop_requested);
    EXPECT_EQ(steps_in(outcome), (std::vector<std::int64_t>{1, 2}));
  }
}

TEST_F(DeviceStepTest, late_step_that_is_not_finite_ends_the_run_with_its_number) {
  DeviceRun device(*this, late);
  device.steps.run(1, no_stop);
  poison(*device.model);
  EXPECT_FALSE(device.steps.run(2, no_stop).numbers.front().anomaly);

  const StepOutcome outcome = device.steps.run(3, no_stop);

  ASSERT_EQ(steps_in(outcome), std::vector<std::int64_t>{2});
  ASSERT_TRUE(outcome.numbers.front().anomaly);
  EXPECT_EQ(outcome.numbers.front().anomaly->values.step, 2);
}

TEST_F(DeviceStepTest, norm_that_is_not_finite_ends_the_run_with_the_number_of_its_step) {
  DeviceRun device(*this, at_once_in(4));
  device.steps.run(1, no_stop);
  poison(*device.model);
  device.steps.run(2, no_stop);
  device.steps.run(3, no_stop);

  const StepNumbers outcome = numbers_of(device.steps, 4);

  ASSERT_TRUE(outcome.anomaly);
  EXPECT_EQ(outcome.anomaly->text(), "step 2: the gradient norm is not finite");
  EXPECT_FALSE(outcome.updated);
}

// As after a resume: the device counts updates, and of the steps before two have none.
TEST_F(DeviceStepTest, bad_step_has_the_number_of_the_run_where_earlier_updates_were_skipped) {
  constexpr std::int64_t kFirst = 5;
  for (const std::int64_t looked_at : {kFirst + 1, kFirst + 3}) {
    DeviceRun device(*this, at_once_in(looked_at));
    device.replicas.set_steps_taken(kFirst - 3);
    device.steps.run(kFirst, no_stop);
    poison(*device.model);
    for (std::int64_t step = kFirst + 1; step < looked_at; ++step) device.steps.run(step, no_stop);

    const StepNumbers outcome = numbers_of(device.steps, looked_at);

    ASSERT_TRUE(outcome.anomaly);
    EXPECT_EQ(outcome.anomaly->text(), looked_at == kFirst + 1
                                           ? "step 6: the loss of rank 0 is not finite"
                                           : "step 6: the gradient norm is not finite");
  }
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
    DeviceRun device(*this, at_once);
    device.model->expect_loss_scale(device.replicas.loss_scale());

    for (std::int64_t step = 1; step <= kSteps; ++step) {
      const StepNumbers expected = numbers_of(host, step);
      const StepNumbers found = numbers_of(device.steps, step);
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
  DeviceRun device(*this, at_once_in(5));

  for (std::int64_t step = 1; step <= 4; ++step)
    EXPECT_TRUE(device.steps.run(step, no_stop).numbers.empty());
  const StepNumbers outcome = numbers_of(device.steps, 5);

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
    DeviceRun device(*this, at_once);
    device.steps.run(1, no_stop);

    const StepNumbers outcome = numbers_of(device.steps, 2);

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
    std::vector<StepNumbers> outcomes;
    make_steps([&](Stepper& steps) {
      for (std::int64_t step = 1; step <= kSteps; ++step)
        outcomes.push_back(numbers_of(steps, step));
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
