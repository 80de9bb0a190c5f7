// Steps that are replayed from a CUDA graph have the bits of steps that are queued one by one, in
// every toggle, NCCL's collectives included. Needs a GPU, which two ranks share.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "launch/device/step_graph.hpp"
#include "tests/launch/device/gpu_steps.hpp"

namespace sidestream::launch {
namespace {

constexpr std::int64_t kSteps = 20;
// The order of the buckets is settled in step 2, and known from step 3 on.
constexpr std::int64_t kCapturedStep = 3 + StepGraph::kWarmUpSteps;

struct RunOfSteps {
  std::vector<double> losses;
  std::vector<double> norms;        // -1: not a number, which is no equal of itself
  std::vector<double> loss_scales;  // 0: none
  torch::Tensor weights;            // all of them, on the host
  std::optional<GraphUse> use;
};

using Words = std::vector<std::string>;

RunOfSteps run_steps(const Words& toggles, bool graph) {
  Words words = {
      "--steps",           "20", "--lr",        "1e-2", "--lr-schedule",   "cosine",
      "--warmup-steps",    "5",  "--log-every", "1",    "--deterministic", "--cuda-graph",
      graph ? "on" : "off"};
  words.insert(words.end(), toggles.begin(), toggles.end());
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  GpuSteps gpu(gpu_options(words));
  RunOfSteps run;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const StepOutcome outcome = gpu.steps->run(step, [] { return false; });
    for (const StepNumbers& numbers : outcome.numbers) {
      run.losses.push_back(numbers.loss);
      run.norms.push_back(std::isnan(numbers.grad_norm) ? -1 : numbers.grad_norm);
      run.loss_scales.push_back(numbers.loss_scale ? numbers.loss_scale->scale : 0);
    }
  }
  std::vector<torch::Tensor> weights;
  for (const torch::Tensor& parameter : gpu.model->parameters())
    weights.push_back(parameter.detach().to(torch::kFloat32).flatten().cpu());
  run.weights = torch::cat(weights);
  run.use = gpu.steps->graph_use();
  return run;
}

struct CudaGraphTest : testing::TestWithParam<Words> {};

TEST_P(CudaGraphTest, twenty_steps_have_the_bits_of_steps_without_a_graph) {
  const RunOfSteps plain = run_steps(GetParam(), /*graph=*/false);
  const RunOfSteps graphed = run_steps(GetParam(), /*graph=*/true);

  ASSERT_EQ(std::ssize(plain.losses), kSteps);
  EXPECT_EQ(graphed.losses, plain.losses);
  EXPECT_EQ(graphed.norms, plain.norms);
  EXPECT_EQ(graphed.loss_scales, plain.loss_scales);
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

INSTANTIATE_TEST_SUITE_P(
    Toggles, CudaGraphTest,
    testing::Values(
        Words{}, Words{"--dropout", "0.1"}, Words{"--dropout", "0.1", "--grad-accumulation", "3"},
        Words{"--precision", "bf16"}, Words{"--precision", "tf32"},
        Words{"--precision", "fp16", "--loss-scale-interval", "4"},
        Words{"--precision", "fp16", "--zero", "1"}, Words{"--optimizer-state-dtype", "bf16"},
        Words{"--algorithm", "sgd"}, Words{"--overlap", "off"}, Words{"--bucketing", "off"},
        Words{"--bucket-mb", "0.05"}, Words{"--zero", "1"},
        Words{"--zero", "1", "--precision", "bf16"}, Words{"--recompute", "blocks"},
        Words{"--dropout", "0.1", "--recompute", "mlp"}, Words{"--loss-chunks", "4"},
        Words{"--fused-ops", "off"}, Words{"--packed-attention", "off", "--precision", "bf16"},
        Words{"--nccl-windows", "off"}, Words{"--pin-memory", "off"}, Words{"--grad-clip", "0"}));

}  // namespace
}  // namespace sidestream::launch
