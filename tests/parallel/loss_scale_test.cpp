// Training with a loss scale on host ranks: in fp32, where scaling by powers of two must change
// nothing, and in fp16.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <ATen/ops/_amp_update_scale.h>

#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using optim::LossScaleConfig;
using optim::LossScaling;
using parallel::OptimizerAlgorithm;
using parallel::OptimizerKernel;

LossScaleConfig fixed(double scale) { return {.kind = LossScaling::kFixed, .scale = scale}; }
constexpr LossScaleConfig kDynamic{.kind = LossScaling::kDynamic, .scale = 4096, .interval = 3};

// The operator that torch.amp.GradScaler.update() calls.
TEST(LossScaleTest, sequence_is_that_of_pytorch) {
  std::mt19937 draw(3);
  for (const int interval : {1, 2, 5}) {
    const LossScaleConfig config{
        .kind = LossScaling::kDynamic, .scale = 65536, .interval = interval};
    optim::GradientScaler scaler(config);
    torch::Tensor scale = torch::full({}, 65536.0f);
    torch::Tensor tracker = torch::zeros({}, torch::kInt32);
    for (int step = 0; step < 2000; ++step) {
      const bool overflows = draw() % 8 == 0 && scaler.scale() > optim::kLeastLossScale;
      at::_amp_update_scale_(scale, tracker, torch::full({}, overflows ? 1.0f : 0.0f), 2.0, 0.5,
                             interval);

      scaler.update(!overflows);

      ASSERT_EQ(scaler.scale(), scale.item<float>()) << step;
      ASSERT_EQ(scaler.state().good_steps, tracker.item<int>()) << step;
    }
  }
}

TEST(LossScaleTest, powers_of_two_cancel_bit_for_bit) {
  for (const auto algorithm : {OptimizerAlgorithm::kAdamW, OptimizerAlgorithm::kSgd}) {
    for (const auto kernel : {OptimizerKernel::kFused, OptimizerKernel::kUnfused}) {
      for (const double grad_clip : {0.0, 1e-2}) {
        const auto train = [&](const LossScaleConfig& scale) {
          return train_on_threads(
              2,
              {.config = {
                   .bucket_mb = kSmallBuckets,
                   .grad_accumulation = 2,
                   .optimizer = {.algorithm = algorithm, .kernel = kernel, .grad_clip = grad_clip},
                   .loss_scale = scale}});
        };
        const ToyResult without = train({});

        for (const LossScaleConfig& scale : {fixed(1), fixed(1024), kDynamic}) {
          const ToyResult with = train(scale);
          EXPECT_EQ(with.losses, without.losses);
          EXPECT_EQ(with.norms, without.norms) << "of gradients without the scale";
          EXPECT_EQ(with.weights, without.weights);
        }
      }
    }
  }
}

TEST(LossScaleTest, other_scales_are_near) {
  const ToyResult without = train_on_threads(2, {}),
                  with = train_on_threads(2, {.config = {.loss_scale = fixed(1000)}});

  for (std::size_t i = 0; i < without.losses.size(); ++i) {
    EXPECT_NEAR(with.losses[i], without.losses[i], 1e-5);
    EXPECT_NEAR(with.norms[i], without.norms[i], 1e-4);
  }
}

TEST(LossScaleTest, fp16_learns_what_fp32_learns) {
  const ToyResult fp32 = train_on_threads(2, {});
  for (const auto reduce : {core::DType::kFloat16, core::DType::kFloat32}) {
    const ToyResult fp16 = train_on_threads(2, {.config = {.parameter_dtype = core::DType::kFloat16,
                                                           .reduce_dtype = reduce,
                                                           .loss_scale = fixed(4096)}});
    ASSERT_LT(fp16.losses.back(), 0.8 * fp16.losses.front());
    for (std::size_t i = 0; i < fp32.losses.size(); ++i)
      EXPECT_NEAR(fp16.losses[i], fp32.losses[i], 1e-3) << i;
  }
}

struct RankRun {
  explicit RankRun(ThreadCommunicator& ranks, const ToyOptions& options)
      : communicator(ranks),
        toy(options),
        net(ranks.rank()),
        replicas(net, ranks, options.config, options.tools) {}

  parallel::StepStatistics step(int number) {
    return run_toy_step(net, replicas, communicator, toy, number).statistics;
  }

  ThreadCommunicator& communicator;
  ToyOptions toy;
  ToyNet net;
  parallel::DataParallel replicas;
};

TEST(LossScaleTest, overflow_on_one_rank_leaves_the_update_out_on_all) {
  for (const auto kernel : {OptimizerKernel::kFused, OptimizerKernel::kUnfused}) {
    for (const int micro_steps : {1, 2}) {
      run_ranks(2, [&](ThreadCommunicator& communicator) {
        RankRun run(communicator, {.config = {.parameter_dtype = core::DType::kFloat16,
                                              .grad_accumulation = micro_steps,
                                              .optimizer = {.kernel = kernel},
                                              .loss_scale = kDynamic},
                                   .overflow_step = 3});
        run.step(1);
        run.step(2);
        const std::vector<float> before = state_of(run.replicas);

        const double norm = run.step(3).grad_norm;

        EXPECT_FALSE(std::isfinite(norm));
        EXPECT_EQ(state_of(run.replicas), before) << "weights and moments";
        EXPECT_EQ(run.replicas.loss_scale_state(),
                  (optim::LossScaleState{.scale = 2048, .good_steps = 0, .left_out = 1}));
        EXPECT_EQ(run.replicas.loss_scale().item<float>(), 2048);
        run.step(4);
        EXPECT_NE(state_of(run.replicas), before);
      });
    }
  }
}

// Bias corrections count the updates that were made: as torch.optim under torch.amp.
TEST(LossScaleTest, step_that_is_left_out_is_as_if_it_had_not_been) {
  for (const auto kernel : {OptimizerKernel::kFused, OptimizerKernel::kUnfused}) {
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      const auto train = [&](const std::vector<int>& steps) {
        RankRun run(communicator,
                    {.config = {.optimizer = {.kernel = kernel}, .loss_scale = kDynamic},
                     .overflow_step = 3});
        for (const int step : steps) run.step(step);
        return state_of(run.replicas);
      };

      EXPECT_EQ(train({1, 2, 3, 4, 5}), train({1, 2, 4, 5}));
      EXPECT_EQ(train({3, 1}), train({1})) << "the first step of all";
    });
  }
}

TEST(LossScaleTest, at_the_least_scale_nothing_changes_any_more) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    RankRun run(communicator,
                {.config = {.loss_scale = {.kind = LossScaling::kDynamic, .scale = 1}},
                 .overflow_step = 2});
    run.step(1);
    const std::vector<float> before = state_of(run.replicas);

    run.step(2);

    EXPECT_EQ(state_of(run.replicas), before);
    EXPECT_EQ(run.replicas.loss_scale_state().scale, 1);
    EXPECT_EQ(run.replicas.loss_scale_state().left_out, 0);
  });
}

TEST(LossScaleTest, without_one_there_is_no_scale) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    RankRun run(communicator, {});

    EXPECT_FALSE(run.replicas.loss_scale().defined());
    EXPECT_EQ(run.replicas.loss_scale_state(), optim::LossScaleState{});
  });
}

// State of weights, moments and scale, written into a run that begins: the same bits from there on.
TEST(LossScaleTest, restored_state_goes_on_bit_for_bit) {
  for (const auto moments : {core::DType::kFloat32, core::DType::kBFloat16}) {
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      const ToyOptions options{.config = {.parameter_dtype = core::DType::kFloat16,
                                          .optimizer = {.state_dtype = moments, .rounding_seed = 5},
                                          .loss_scale = kDynamic},
                               .overflow_step = 3};
      RankRun whole(communicator, options), rest(communicator, options);
      for (int step = 1; step <= 4; ++step) whole.step(step);
      const auto from = whole.replicas.states();
      const auto to = rest.replicas.states();
      for (std::size_t i = 0; i < from.size(); ++i) {
        to[i].master.copy_(from[i].master);
        for (std::size_t m = 0; m < from[i].moments.size(); ++m)
          to[i].moments[m].tensor.copy_(from[i].moments[m].tensor);
      }
      rest.replicas.refresh_parameters();
      rest.replicas.set_steps_taken(whole.replicas.steps_taken());
      rest.replicas.restore_loss_scale(whole.replicas.loss_scale_state());

      for (int step = 5; step <= 9; ++step) {
        whole.step(step);
        rest.step(step);
      }

      EXPECT_EQ(state_of(rest.replicas), state_of(whole.replicas));
      EXPECT_EQ(rest.replicas.loss_scale_state(), whole.replicas.loss_scale_state());
    });
  }
}

}  // namespace
}  // namespace sidestream::test
