// A model on a GPU with its kernels, beside the same model with LibTorch's operators; and a step of
// it as a CUDA graph. Needs a GPU.
#include <gtest/gtest.h>

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include "model/language_model.hpp"
#include "tests/model/operator_outcome.hpp"

namespace sidestream::model {
namespace {

using torch::Tensor;

const torch::Device kGpu(torch::kCUDA, 0);

enum class Attention { kLibTorch, kPacked };
enum class Tuning { kOff, kOn };

std::shared_ptr<LanguageModel> model_on_gpu(FusedOps fused, at::ScalarType dtype,
                                            Attention attention = Attention::kLibTorch,
                                            Tuning tuning = Tuning::kOff) {
  ModelConfig config = preset("gpt2-micro");
  config.fused_ops = fused;
  config.packed_attention = attention == Attention::kPacked;
  config.tune_products = tuning == Tuning::kOn;
  config.loss_chunks = 3;
  auto model = make_language_model(config);
  model->initialise(1);
  model->to(kGpu, dtype);
  return model;
}

Tensor ids(const LanguageModel& model, std::int64_t seed) {
  torch::manual_seed(seed);
  return torch::randint(model.config().vocab_size, {4, 16}, torch::kLong).to(kGpu);
}

std::vector<double> losses(LanguageModel& model, int steps) {
  const Tensor inputs = ids(model, 3), targets = ids(model, 4);
  std::vector<double> found;
  for (int step = 0; step < steps; ++step) {
    model.zero_grad();
    const Tensor loss = model.loss(inputs, targets);
    loss.backward();
    const torch::NoGradGuard no_grad;
    for (Tensor& parameter : model.parameters()) parameter.sub_(parameter.grad(), 0.1);
    found.push_back(loss.item<double>());
  }
  return found;
}

TEST(GpuModelTest, losses_with_kernels_are_those_of_libtorch) {
  // Beyond these a difference of one rounding has grown past what tells right from wrong.
  constexpr int kSteps = 10;
  struct Case {
    FusedOps fused;
    at::ScalarType dtype;
    double tolerance;
    Attention attention = Attention::kLibTorch;
    Tuning tuning = Tuning::kOff;
  };
  for (const auto& [fused_ops, dtype, tolerance, attention, tuning] :
       {Case{FusedOps::kOn, at::kFloat, 1e-4}, Case{FusedOps::kOn, at::kBFloat16, 3e-2},
        Case{FusedOps::kOn, at::kHalf, 5e-3},
        Case{FusedOps::kOn, at::kBFloat16, 3e-2, Attention::kPacked},
        Case{FusedOps::kOn, at::kHalf, 5e-3, Attention::kPacked},
        Case{FusedOps::kOn, at::kBFloat16, 3e-2, Attention::kLibTorch, Tuning::kOn},
        Case{FusedOps::kOn, at::kHalf, 5e-3, Attention::kPacked, Tuning::kOn}}) {
    const std::vector<double> fused =
        losses(*model_on_gpu(fused_ops, dtype, attention, tuning), kSteps);
    const std::vector<double> plain = losses(*model_on_gpu(FusedOps::kOff, dtype), kSteps);
    for (std::size_t step = 0; step < fused.size(); ++step)
      EXPECT_NEAR(fused[step], plain[step], tolerance) << dtype << ", step " << step;
    EXPECT_LT(fused.back(), fused.front());
  }
}

TEST(GpuModelTest, losses_are_the_same_bits_in_every_run) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  for (const Attention attention : {Attention::kLibTorch, Attention::kPacked}) {
    const auto run = [=] {
      return losses(*model_on_gpu(FusedOps::kOn, at::kBFloat16, attention), 10);
    };
    const std::vector<double> one = run();
    EXPECT_EQ(one, run());
  }
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

// Everything that a forward and a backward do can be captured, once they have seen their products:
// nothing waits, nothing is read back, all memory is LibTorch's.
TEST(GpuModelTest, a_step_can_be_captured_as_a_graph) {
  const auto model = model_on_gpu(FusedOps::kOn, at::kBFloat16, Attention::kPacked, Tuning::kOn);
  const Tensor inputs = ids(*model, 3), targets = ids(*model, 4);
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(stream);
  Tensor loss;
  const auto step = [&] {
    model->zero_grad();
    loss = model->loss(inputs, targets);
    loss.backward();
  };
  step();
  step();
  stream.synchronize();
  const double expected = loss.item<double>();
  const Tensor gradient = model->parameters().front().grad().clone();

  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  step();
  graph.capture_end();
  graph.replay();
  stream.synchronize();

  EXPECT_EQ(loss.item<double>(), expected);
  EXPECT_LT(relative_error(model->parameters().front().grad(), gradient), 1e-2);
}

}  // namespace
}  // namespace sidestream::model
