// Steps with a graph are those without one, on a machine without a GPU: a replay does again what
// was captured, with the host's numbers of that time, and has to find those of its own step where
// the host has brought them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "comm/device/nccl_communicator.hpp"
#include "core/base/error.hpp"
#include "launch/device/device_step_runner.hpp"
#include "tests/comm/device/fake_nccl.hpp"
#include "tests/comm/device/scripted_host.hpp"
#include "tests/core/optim/host_kernels.hpp"
#include "tests/launch/device/fake_graph_engine.hpp"

namespace sidestream::launch {
namespace {

constexpr std::int64_t kBatch = 4, kLength = 16, kSteps = 20;
// The order of the buckets is settled in step 2, and known from step 3 on.
constexpr std::int64_t kCapturedStep = 3 + StepGraph::kWarmUpSteps;

bool no_stop() { return false; }
Look at_once(std::int64_t) { return Look::kAtOnce; }

struct GraphedStepTest : testing::Test {
  std::shared_ptr<comm::cuda::FakeDriver> driver = std::make_shared<comm::cuda::FakeDriver>();
  std::shared_ptr<comm::nccl::FakeNccl> api = std::make_shared<comm::nccl::FakeNccl>(driver);
  comm::Stream compute = driver->create_stream(comm::cuda::Priority::kNormal);
  parallel::CurrentStream current_stream = [this] { return compute; };
  std::shared_ptr<comm::HostRecord> record = std::make_shared<comm::HostRecord>();
  comm::NcclCommunicator communicator{
      std::make_unique<comm::ScriptedHost>(1, record), {.driver = driver}, api, {}};
  std::shared_ptr<FakeGraphEngine::Script> script = std::make_shared<FakeGraphEngine::Script>();
  model::ModelConfig model_config = [] {
    model::ModelConfig config = model::preset("gpt2-micro");
    config.fused_ops = model::FusedOps::kOff;
    config.dropout = 0.1;
    return config;
  }();
  parallel::DataParallelConfig training = {};
  std::function<std::string(std::int64_t)> eager_because = {};
  std::vector<faults::Fault> faults = {};

  GraphedStepTest() {
    script->begin = [this] { driver->start_capture(compute); };
    script->end = [this] { driver->finish_capture(); };
  }

  StepRunnerConfig config() const {
    return {.seed = 3,
            .grad_accumulation = training.grad_accumulation,
            .sequence_length = kLength,
            .schedule = {.kind = optim::ScheduleKind::kCosine,
                         .lr = 1e-2,
                         .steps = kSteps,
                         .warmup_steps = 4},
            .loss_scale = training.loss_scale,
            .faults = std::make_shared<faults::FaultInjector>(faults, faults::Victim{})};
  }
};

enum class Graph { kOff, kOn };

// Everything that a run on the device needs.
struct GraphedRun {
  GraphedRun(GraphedStepTest& test, Graph graph)
      : model(model::make_language_model(test.model_config)),
        loader(std::make_unique<data::Loader>(
            data::LoaderConfig{
                .batch_size = kBatch,
                .sequence_length = kLength,
                .grad_accumulation = static_cast<std::uint64_t>(test.training.grad_accumulation),
                .max_held = DeviceFeed::kBatchesHeld},
            std::make_shared<data::SyntheticSource>(
                static_cast<std::uint64_t>(test.model_config.vocab_size), 7))),
        replicas(initialised(), test.communicator, test.training,
                 {.kernels = std::make_shared<optim::HostKernels>(),
                  .current_stream = test.current_stream}),
        feed(*loader, test.driver,
             {.batch_size = kBatch,
              .sequence_length = kLength,
              .slots = StaticBatches::slots_for(test.training.grad_accumulation)},
             test.current_stream),
        steps({.model = *model,
               .replicas = replicas,
               .feed = feed,
               .communicator = test.communicator,
               .driver = test.driver,
               .current_stream = test.current_stream},
              test.config(), at_once, parts(test, graph)) {
    model->expect_loss_scale(replicas.loss_scale());
    test.script->undo_host = [this] { replicas.set_steps_taken(replicas.steps_taken() - 1); };
  }

  StepNumbers step(std::int64_t number) { return steps.run(number, no_stop).numbers.at(0); }

  // As an evaluation does it, on tokens that are always the same.
  double evaluated() const {
    const torch::NoGradGuard no_grad;
    model->eval();
    const torch::Tensor tokens_bt = torch::arange(kBatch * kLength).reshape({kBatch, kLength});
    return model->loss(tokens_bt, tokens_bt.roll(-1, 1)).item<double>();
  }

  model::LanguageModel& initialised() const {
    model->initialise(1);
    return *model;
  }
  static GraphParts parts(GraphedStepTest& test, Graph graph) {
    if (graph == Graph::kOff) return {};
    return {.engine = std::make_unique<FakeGraphEngine>(test.script),
            .eager_because = test.eager_because};
  }

  std::shared_ptr<model::LanguageModel> model;
  std::unique_ptr<data::Loader> loader;
  parallel::DataParallel replicas;
  DeviceFeed feed;
  DeviceStepRunner steps;
};

void poison(const model::LanguageModel& model) {
  const torch::NoGradGuard no_grad;
  model.parameters().front().view(-1)[0] = NAN;
}

std::vector<float> weights_of(const model::LanguageModel& model) {
  std::vector<float> weights;
  for (const torch::Tensor& parameter : model.parameters()) {
    const torch::Tensor flat = parameter.detach().to(torch::kFloat32).flatten();
    weights.insert(weights.end(), flat.const_data_ptr<float>(),
                   flat.const_data_ptr<float>() + flat.numel());
  }
  return weights;
}

// Of a run with a graph.
optim::LossScaleState expect_same_runs(GraphedStepTest& test) {
  GraphedRun plain(test, Graph::kOff);
  GraphedRun graphed(test, Graph::kOn);
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const StepOutcome of_plain = plain.steps.run(step, no_stop);
    const StepOutcome of_graphed = graphed.steps.run(step, no_stop);
    const StepNumbers& expected = of_plain.numbers.at(0);
    const StepNumbers& found = of_graphed.numbers.at(0);
    EXPECT_EQ(found.loss, expected.loss) << step;
    EXPECT_TRUE(found.grad_norm == expected.grad_norm ||
                (std::isnan(found.grad_norm) && std::isnan(expected.grad_norm)))
        << step;
    EXPECT_EQ(found.loss_scale, expected.loss_scale) << step;
    EXPECT_FALSE(found.anomaly) << step;
    EXPECT_EQ(of_graphed.lr, of_plain.lr) << step;
    EXPECT_EQ(graphed.replicas.steps_taken(), step);
  }
  EXPECT_EQ(weights_of(*graphed.model), weights_of(*plain.model));
  EXPECT_EQ(graphed.steps.graph_use()->replayed_steps, kSteps - kCapturedStep + 1);
  EXPECT_FALSE(plain.steps.graph_use());
  return graphed.replicas.loss_scale_state();
}

TEST_F(GraphedStepTest, twenty_steps_have_the_bits_of_steps_without_a_graph) {
  expect_same_runs(*this);
}

TEST_F(GraphedStepTest, micro_steps_have_batches_and_draws_of_their_own) {
  training.grad_accumulation = 3;
  expect_same_runs(*this);
}

TEST_F(GraphedStepTest, every_kind_of_update_reads_its_numbers_on_the_device) {
  for (const auto algorithm :
       {parallel::OptimizerAlgorithm::kAdamW, parallel::OptimizerAlgorithm::kSgd}) {
    for (const auto dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
      training.optimizer = {
          .algorithm = algorithm, .momentum = 0.9, .state_dtype = dtype, .rounding_seed = 5};
      expect_same_runs(*this);
    }
  }
}

// The scale doubles until a gradient overflows in a replay, and bias correction then has fewer
// updates behind it than there were steps.
TEST_F(GraphedStepTest, loss_scale_moves_and_leaves_out_updates_between_replays) {
  training.parameter_dtype = core::DType::kFloat16;
  training.loss_scale = {.kind = optim::LossScaling::kDynamic, .scale = 256, .interval = 1};
  for (const auto algorithm :
       {parallel::OptimizerAlgorithm::kAdamW, parallel::OptimizerAlgorithm::kSgd}) {
    training.optimizer = {.algorithm = algorithm, .momentum = 0.9};

    const optim::LossScaleState state = expect_same_runs(*this);

    EXPECT_GT(state.scale, 256);
    EXPECT_GT(state.left_out, 0);
  }
}

TEST_F(GraphedStepTest, every_way_of_synchronising_can_be_captured) {
  for (const auto sync : {parallel::GradientSync::kPerParameter, parallel::GradientSync::kBucketed,
                          parallel::GradientSync::kOverlapped}) {
    training.gradient_sync = sync;
    training.bucket_mb = 0.01;
    expect_same_runs(*this);
  }
}

TEST_F(GraphedStepTest, step_that_has_to_be_eager_is_and_replays_go_on_after_it) {
  eager_because = [](std::int64_t step) { return step == 12 ? "it is profiled" : ""; };
  GraphedRun plain(*this, Graph::kOff);
  GraphedRun graphed(*this, Graph::kOn);

  for (std::int64_t step = 1; step <= kSteps; ++step)
    EXPECT_EQ(graphed.step(step).loss, plain.step(step).loss) << step;

  EXPECT_EQ(graphed.steps.graph_use()->eager_steps, kCapturedStep);
  EXPECT_EQ(weights_of(*graphed.model), weights_of(*plain.model));
}

TEST_F(GraphedStepTest, new_order_of_the_buckets_drops_the_graph) {
  GraphedRun graphed(*this, Graph::kOn);
  for (std::int64_t step = 1; step <= 8; ++step) graphed.steps.run(step, no_stop);
  ASSERT_TRUE(script->has_graph);

  auto order = graphed.replicas.bucket_order();
  std::swap(order.front(), order.back());
  graphed.replicas.set_bucket_order(order);
  const StepOutcome outcome = graphed.steps.run(9, no_stop);

  EXPECT_FALSE(script->has_graph);
  EXPECT_THAT(outcome.news, testing::HasSubstr("the buckets have changed"));
  EXPECT_TRUE(std::isfinite(outcome.numbers.at(0).loss));
}

TEST_F(GraphedStepTest, planted_loss_is_found_with_the_number_of_its_step) {
  faults = faults::parse_faults("nan:step=12");
  eager_because = [](std::int64_t step) { return step == 12 ? "a fault" : ""; };
  GraphedRun graphed(*this, Graph::kOn);
  for (std::int64_t step = 1; step <= 11; ++step) graphed.steps.run(step, no_stop);
  const auto before = weights_of(*graphed.model);

  const StepNumbers outcome = graphed.step(12);

  ASSERT_TRUE(outcome.anomaly);
  EXPECT_THAT(outcome.anomaly->text(), testing::HasSubstr("step 12"));
  EXPECT_EQ(weights_of(*graphed.model), before);
}

TEST_F(GraphedStepTest, loss_that_is_not_finite_in_a_replay_has_rank_and_step) {
  GraphedRun graphed(*this, Graph::kOn);
  for (std::int64_t step = 1; step <= 9; ++step) graphed.steps.run(step, no_stop);
  poison(*graphed.model);

  const StepNumbers outcome = graphed.step(10);

  ASSERT_TRUE(outcome.anomaly);
  EXPECT_EQ(outcome.anomaly->text(), "step 10: the loss of rank 0 is not finite");
}

// As after a resume: the device counts updates, and of the steps before two have none.
TEST_F(GraphedStepTest, bad_step_of_a_replay_has_the_number_of_the_run) {
  GraphedRun graphed(*this, Graph::kOn);
  graphed.replicas.set_steps_taken(2);
  for (std::int64_t step = 5; step <= 13; ++step) graphed.steps.run(step, no_stop);
  ASSERT_TRUE(script->has_graph);
  poison(*graphed.model);

  const StepNumbers outcome = graphed.step(14);

  ASSERT_TRUE(outcome.anomaly);
  EXPECT_EQ(outcome.anomaly->text(), "step 14: the loss of rank 0 is not finite");
}

TEST_F(GraphedStepTest, failed_capture_leaves_replicas_between_two_steps) {
  GraphedRun graphed(*this, Graph::kOn);
  for (std::int64_t step = 1; step < kCapturedStep; ++step) graphed.steps.run(step, no_stop);
  script->capture_failure = "operation not permitted when stream is capturing";

  EXPECT_THROW(graphed.steps.run(kCapturedStep, no_stop), core::AgreedError);

  EXPECT_EQ(record->deadline, std::chrono::seconds(10)) << "peers may be held up by it";
  EXPECT_EQ(graphed.replicas.steps_taken(), kCapturedStep - 1);
  EXPECT_NO_THROW(graphed.replicas.begin_micro_step(0));
  graphed.replicas.abandon_step(kCapturedStep - 1);
}

TEST_F(GraphedStepTest, evaluations_between_replays_see_the_weights_and_leave_no_trace) {
  GraphedRun plain(*this, Graph::kOff);
  GraphedRun unevaluated(*this, Graph::kOff);
  GraphedRun graphed(*this, Graph::kOn);
  std::vector<double> of_plain, of_graphed;

  for (std::int64_t step = 1; step <= kSteps; ++step) {
    EXPECT_EQ(graphed.step(step).loss, plain.step(step).loss) << step;
    unevaluated.step(step);
    if (step % 3 != 0) continue;
    of_plain.push_back(plain.evaluated());
    of_graphed.push_back(graphed.evaluated());
  }

  EXPECT_EQ(of_graphed, of_plain);
  EXPECT_NE(of_graphed.back(), of_graphed.front());
  EXPECT_EQ(weights_of(*graphed.model), weights_of(*plain.model));
  EXPECT_EQ(weights_of(*graphed.model), weights_of(*unevaluated.model));
}

TEST_F(GraphedStepTest, replays_ask_the_device_for_nothing) {
  GraphedRun graphed(*this, Graph::kOn);
  for (std::int64_t step = 1; step <= kCapturedStep; ++step) graphed.steps.run(step, no_stop);
  const int synchronizations = driver->synchronizations;

  for (std::int64_t step = kCapturedStep + 1; step <= kSteps; ++step)
    graphed.steps.run(step, no_stop);

  EXPECT_EQ(driver->synchronizations, synchronizations);
}

}  // namespace
}  // namespace sidestream::launch
