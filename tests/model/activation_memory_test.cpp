// The estimate of a step's memory against what LibTorch's allocator hands out in a real step.
#include "model/activation_memory.hpp"

#include <gtest/gtest.h>

#include <string>

#include <ATen/Parallel.h>

#include "model/language_model.hpp"
#include "tests/core/base/late_copies.hpp"
#include "tests/model/tensor_meter.hpp"

namespace sidestream::model {
namespace {

using torch::Tensor;

struct Measured {
  std::int64_t kept = 0, peak = 0;
};

// Large enough for what operators take by themselves, which does not grow with it, to be a small
// part.
constexpr std::int64_t kBatch = 16, kTime = 64;

ModelConfig config_of(Recompute level, FusedOps fused, double dropout = 0) {
  ModelConfig config = preset("gpt2-micro");
  config.layers = 6;
  config.heads = 4;
  config.width = 64;
  config.context_length = kTime;
  config.recompute = level;
  config.fused_ops = fused;
  config.dropout = dropout;
  return config;
}

// Gradients of parameters have memory before, as a trainer's buckets are there before a step: what
// is added to them is a tensor of its own for a moment only.
Measured measure(const ModelConfig& config, at::ScalarType dtype) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto model = make_language_model(config);
  model->initialise(1);
  model->to(dtype);
  if (config.residuals == ResidualPlace::kHost)
    model->keep_residuals_in(std::make_shared<ResidualStore>(std::make_shared<core::LateCopies>()));
  const Tensor x = torch::randint(512, {kBatch, config.context_length}, torch::kLong);
  for (Tensor& parameter : model->parameters())
    parameter.mutable_grad() = torch::zeros_like(parameter);
  const auto meter = std::make_shared<test::TensorMeter>();
  Measured measured;
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    const Tensor loss = model->loss(x, x);
    measured.kept = meter->now;
    loss.backward();
  }
  measured.peak = meter->peak;
  at::set_num_threads(threads);
  return measured;
}

std::size_t planned(const ModelConfig& config, at::ScalarType dtype) {
  return activation_memory(config,
                           {.batch = kBatch,
                            .sequence_length = config.context_length,
                            .element_bytes = static_cast<std::int64_t>(c10::elementSize(dtype))})
      .peak();
}

constexpr Recompute kLevels[] = {Recompute::kNone, Recompute::kActivations, Recompute::kMlp,
                                 Recompute::kAttention, Recompute::kBlocks};

void expect_within(const ModelConfig& config, at::ScalarType dtype, double share) {
  SCOPED_TRACE(std::string(config.fused_ops == FusedOps::kOn ? "fused " : "plain ") +
               c10::toString(dtype) + " level " +
               std::to_string(static_cast<int>(config.recompute)) + " chunks " +
               std::to_string(config.loss_chunks));
  const auto found = static_cast<double>(measure(config, dtype).peak),
             expected = static_cast<double>(planned(config, dtype));
  EXPECT_LT(found, expected * (1 + share));
  EXPECT_GT(found, expected * (1 - share));
}

TEST(ActivationMemoryTest, peak_is_within_a_fifth_of_the_measured_one) {
  for (const FusedOps fused : {FusedOps::kOn, FusedOps::kOff}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      for (const Recompute level : kLevels) {
        for (const std::int64_t chunks : {1, 8}) {
          ModelConfig config = config_of(level, fused);
          config.loss_chunks = chunks;
          expect_within(config, dtype, 0.2);
        }
      }
    }
  }
}

TEST(ActivationMemoryTest, peak_of_an_odd_width_is_that_of_plain_operators) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t chunks : {1, 8}) {
      ModelConfig config = config_of(Recompute::kNone, FusedOps::kOn);
      config.heads = 3;
      config.width = 63;
      config.loss_chunks = chunks;
      expect_within(config, dtype, 0.2);
    }
  }
}

TEST(ActivationMemoryTest, peak_with_dropout_is_near_the_measured_one) {
  for (const Recompute level : kLevels)
    expect_within(config_of(level, FusedOps::kOff, 0.1), at::kFloat, 0.2);
}

// Where matrices of T x T are most of it.
TEST(ActivationMemoryTest, peak_with_dropout_of_long_samples_is_near_the_measured_one) {
  for (const FusedOps fused : {FusedOps::kOn, FusedOps::kOff}) {
    for (const Recompute level : kLevels) {
      ModelConfig config = config_of(level, fused, 0.1);
      config.context_length = 256;
      expect_within(config, at::kFloat, 0.2);
    }
  }
}

TEST(ActivationMemoryTest, peak_with_inputs_on_the_host_is_near_the_measured_one) {
  for (const FusedOps fused : {FusedOps::kOn, FusedOps::kOff}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      for (const std::int64_t layers : {3, 6, 20}) {
        ModelConfig config = config_of(Recompute::kBlocks, fused);
        config.layers = layers;
        config.residuals = ResidualPlace::kHost;
        config.loss_chunks = 8;
        expect_within(config, dtype, 0.2);
      }
    }
  }
}

TEST(ActivationMemoryTest, inputs_on_the_host_are_those_of_inner_blocks) {
  ModelConfig config = config_of(Recompute::kBlocks, FusedOps::kOn);
  const StepShape shape{.batch = kBatch, .sequence_length = kTime, .element_bytes = 2};
  EXPECT_EQ(activation_memory(config, shape).host, 0u);

  config.residuals = ResidualPlace::kHost;

  EXPECT_EQ(activation_memory(config, shape).host,
            4u * static_cast<std::size_t>(kBatch * kTime * config.width * 2));
  config.layers = 2;
  EXPECT_EQ(activation_memory(config, shape).host, 0u);
}

// The order of the levels is that of what they save, planned and measured.
TEST(ActivationMemoryTest, every_level_keeps_less_than_the_one_before) {
  for (const FusedOps fused : {FusedOps::kOn, FusedOps::kOff}) {
    std::int64_t kept = std::int64_t{1} << 40;
    std::size_t planned_kept = std::size_t{1} << 40;
    for (const Recompute level : kLevels) {
      const ModelConfig config = config_of(level, fused);
      const std::int64_t less = measure(config, at::kFloat).kept;
      const std::size_t planned_less =
          activation_memory(config, {.batch = kBatch, .sequence_length = kTime}).kept;
      EXPECT_LT(less, kept) << static_cast<int>(level);
      EXPECT_LT(planned_less, planned_kept) << static_cast<int>(level);
      kept = less;
      planned_kept = planned_less;
    }
  }
}

TEST(ActivationMemoryTest, chunks_of_a_large_vocabulary_lower_the_peak) {
  ModelConfig config = config_of(Recompute::kNone, FusedOps::kOff);
  config.vocab_size = config.padded_vocab_size = 8192;
  const auto with = [&](std::int64_t chunks) {
    config.loss_chunks = chunks;
    return measure(config, at::kFloat).peak;
  };

  EXPECT_LT(with(8), with(1) / 2);
}

TEST(ActivationMemoryTest, grows_with_the_batch) {
  const ModelConfig config = preset("gpt2-124m");
  const auto peak = [&](std::int64_t batch) {
    return activation_memory(config, {.batch = batch, .sequence_length = 1024}).kept;
  };

  EXPECT_EQ(peak(8), 8 * peak(1));
}

}  // namespace
}  // namespace sidestream::model
