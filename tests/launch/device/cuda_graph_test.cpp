// Steps that are replayed from a CUDA graph have the bits of steps that are queued one by one, in
// every toggle, NCCL's collectives included. Needs a GPU, which two ranks share.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/assembly/stepper_assembly.hpp"
#include "launch/device/device_session.hpp"
#include "launch/device/step_graph.hpp"
#include "launch/options/train_parser.hpp"
#include "tests/comm/communicator_fixture.hpp"

namespace sidestream::launch {
namespace {

constexpr std::int64_t kSteps = 20;
// The order of the buckets is settled in step 2, and known from step 3 on.
constexpr std::int64_t kCapturedStep = 3 + StepGraph::kWarmUpSteps;

std::unique_ptr<comm::Communicator> make_gpu_communicator() {
  comm::CommunicatorConfig config{.backend = comm::Backend::kNccl,
                                  .device = comm::DeviceWish::kCuda,
                                  .gpu_sharing = comm::GpuSharing::kAllowed};
  comm::choose_device(config);
  std::vector<std::string> warnings;
  return comm::make_communicator(test::mpi_environment(), config, warnings);
}

struct RunOfSteps {
  std::vector<double> losses, norms;
  torch::Tensor weights;  // all of them, on the host
  std::optional<GraphUse> use;
};

using Words = std::vector<std::string>;

RunOfSteps run_steps(const Words& toggles, bool graph) {
  Words words = {"--model",
                 "gpt2-tiny",
                 "--data",
                 "synthetic",
                 "--sequence-length",
                 "32",
                 "--steps",
                 "20",
                 "--lr",
                 "1e-2",
                 "--lr-schedule",
                 "cosine",
                 "--warmup-steps",
                 "5",
                 "--log-every",
                 "1",
                 "--device",
                 "cuda",
                 "--batch-size-per-rank",
                 "4",
                 "--deterministic",
                 "--cuda-graph",
                 graph ? "on" : "off"};
  words.insert(words.end(), toggles.begin(), toggles.end());
  TrainOptions options = parse_train_options(words);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  const DataSources sources = open_data(options);
  set_vocabulary(options, sources.vocab_size);
  const auto communicator = make_gpu_communicator();
  const DeviceSession device(*communicator, options);
  const auto model = model::make_language_model(options.model.config);
  model->initialise(1);
  model->to(device.device());
  parallel::DataParallel replicas(*model, *communicator, data_parallel_config(options));
  const auto loader =
      make_loader(sources, options, communicator->topology(), {}, loader_memory(options, device));
  const auto steps = make_stepper(
      {.model = *model, .replicas = replicas, .loader = *loader, .communicator = *communicator},
      {.seed = 1,
       .grad_accumulation = options.parallel.grad_accumulation,
       .sequence_length = sequence_length(options),
       .schedule = schedule_config(options)},
      options, device);
  RunOfSteps run;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const StepOutcome outcome = steps->run(step, [] { return false; });
    run.losses.push_back(outcome.loss);
    run.norms.push_back(outcome.grad_norm);
  }
  std::vector<torch::Tensor> weights;
  for (const torch::Tensor& parameter : model->parameters())
    weights.push_back(parameter.detach().to(torch::kFloat32).flatten().cpu());
  run.weights = torch::cat(weights);
  run.use = steps->graph_use();
  return run;
}

struct CudaGraphTest : testing::TestWithParam<Words> {};

TEST_P(CudaGraphTest, twenty_steps_have_the_bits_of_steps_without_a_graph) {
  const RunOfSteps plain = run_steps(GetParam(), /*graph=*/false);
  const RunOfSteps graphed = run_steps(GetParam(), /*graph=*/true);

  EXPECT_EQ(graphed.losses, plain.losses);
  EXPECT_EQ(graphed.norms, plain.norms);
  EXPECT_TRUE(torch::equal(graphed.weights, plain.weights));
  ASSERT_TRUE(graphed.use);
  EXPECT_EQ(graphed.use->captures, 1);
  EXPECT_EQ(graphed.use->replayed_steps, kSteps - kCapturedStep + 1);
}

// A profiled step, and then replays again.
TEST(CudaGraphProfileTest, steps_of_a_profile_are_eager_between_replays) {
  const Words profile = {"--profile", "wait=10,warmup=1,active=2"};
  const RunOfSteps plain = run_steps({}, /*graph=*/false);
  const RunOfSteps graphed = run_steps(profile, /*graph=*/true);

  EXPECT_EQ(graphed.losses, plain.losses);
  EXPECT_EQ(graphed.use->captures, 1);
  EXPECT_EQ(graphed.use->replayed_steps, kSteps - kCapturedStep + 1 - 3);
}

INSTANTIATE_TEST_SUITE_P(Toggles, CudaGraphTest,
                         testing::Values(Words{}, Words{"--dropout", "0.1"},
                                         Words{"--dropout", "0.1", "--grad-accumulation", "3"},
                                         Words{"--precision", "bf16"}, Words{"--precision", "tf32"},
                                         Words{"--optimizer-state-dtype", "bf16"},
                                         Words{"--algorithm", "sgd"}, Words{"--overlap", "off"},
                                         Words{"--bucketing", "off"}, Words{"--bucket-mb", "0.05"},
                                         Words{"--zero", "1"},
                                         Words{"--zero", "1", "--precision", "bf16"},
                                         Words{"--recompute", "blocks"},
                                         Words{"--loss-chunks", "4"}, Words{"--fused-ops", "off"},
                                         Words{"--nccl-windows", "off"},
                                         Words{"--pin-memory", "off"}, Words{"--grad-clip", "0"}));

}  // namespace
}  // namespace sidestream::launch
