// What happens on a GPU, on a machine without one.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/parallel/device_path_case.hpp"

namespace sidestream::test {
namespace {

using parallel::GradientSync;

constexpr auto kUnfused = parallel::OptimizerKernel::kUnfused;
constexpr auto kFused = parallel::OptimizerKernel::kFused;

TEST_F(DevicePathTest, training_has_the_bits_of_host_ranks) {
  for (const GradientSync kind :
       {GradientSync::kPerParameter, GradientSync::kBucketed, GradientSync::kOverlapped}) {
    for (const int micro_steps : {1, 2}) {
      expect_same_weights({.config = {.gradient_sync = kind,
                                      .bucket_mb = kSmallBuckets,
                                      .first_bucket_mb = kSmallBuckets,
                                      .grad_accumulation = micro_steps}});
    }
  }
}

TEST_F(DevicePathTest, bf16_weights_with_masters_have_the_bits_of_host_ranks) {
  expect_same_weights({.config = {.parameter_dtype = core::DType::kBFloat16}});
  expect_same_weights({.config = {.parameter_dtype = core::DType::kBFloat16,
                                  .reduce_dtype = core::DType::kFloat32}});
}

constexpr optim::LossScaleConfig kDynamic{
    .kind = optim::LossScaling::kDynamic, .scale = 4096, .interval = 3};

// Growth, a step that is left out, and bias corrections that count the others.
TEST_F(DevicePathTest, fp16_weights_with_masters_have_the_bits_of_host_ranks) {
  for (const auto kernel : {kFused, kUnfused}) {
    for (const auto reduce : {core::DType::kFloat16, core::DType::kFloat32}) {
      for (const auto state_dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
        const ToyOptions options{.config = {.bucket_mb = kSmallBuckets,
                                            .parameter_dtype = core::DType::kFloat16,
                                            .reduce_dtype = reduce,
                                            .optimizer = {.kernel = kernel,
                                                          .state_dtype = state_dtype,
                                                          .rounding_seed = 7},
                                            .loss_scale = kDynamic},
                                 .overflow_step = 5};
        if (kernel == kFused) {
          expect_same_weights(options);
          continue;
        }
        comm::SingleCommunicator alone;
        const auto expected = torch::tensor(train_toy(alone, options).weights);
        const auto found = torch::tensor(train_toy(communicator, on_device(options)).weights);
        EXPECT_LT((found - expected).norm().item<double>(), 2e-3 * expected.norm().item<double>());
      }
    }
  }
}

TEST_F(DevicePathTest, update_that_the_loss_scale_leaves_out_is_as_if_its_step_had_not_been) {
  for (const auto algorithm :
       {parallel::OptimizerAlgorithm::kAdamW, parallel::OptimizerAlgorithm::kSgd}) {
    for (const auto kernel : {kFused, kUnfused}) {
      const auto train = [&](const std::vector<int>& steps) {
        const ToyOptions options =
            on_device({.config = {.optimizer = {.algorithm = algorithm, .kernel = kernel},
                                  .loss_scale = kDynamic},
                       .overflow_step = 3});
        ToyNet net(0);
        parallel::DataParallel replicas(net, communicator, options.config, options.tools);
        for (const int step : steps) run_toy_step(net, replicas, communicator, options, step);
        EXPECT_EQ(replicas.loss_scale_state().left_out, steps.size() == 5 ? 1 : 0);
        EXPECT_EQ(replicas.first_bad_step(), 0) << "no incident";
        return state_of(replicas);
      };

      EXPECT_EQ(train({1, 2, 3, 4, 5}), train({1, 2, 4, 5}));
    }
  }
}

TEST_F(DevicePathTest, gradients_that_are_not_finite_at_the_least_scale_end_the_updates) {
  const ToyOptions options =
      on_device({.config = {.loss_scale = {.kind = optim::LossScaling::kDynamic, .scale = 1}},
                 .overflow_step = 2});
  ToyNet net(0);
  parallel::DataParallel replicas(net, communicator, options.config, options.tools);
  run_toy_step(net, replicas, communicator, options, 1);
  const auto before = state_of(replicas);

  run_toy_step(net, replicas, communicator, options, 2);
  run_toy_step(net, replicas, communicator, options, 3);

  EXPECT_EQ(replicas.first_bad_step(), 2);
  EXPECT_EQ(state_of(replicas), before);
  EXPECT_EQ(replicas.loss_scale_state().scale, 1);
}

TEST_F(DevicePathTest, sgd_has_the_bits_of_host_ranks) {
  for (const double momentum : {0.0, 0.9}) {
    expect_same_weights({.config = {.optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd,
                                                  .momentum = momentum}}});
  }
}

TEST_F(DevicePathTest, plain_operators_have_the_bits_of_host_ranks) {
  for (const core::DType dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
    expect_same_weights({.config = {.parameter_dtype = dtype, .optimizer = {.kernel = kUnfused}}});
  }
}

TEST_F(DevicePathTest, narrow_moments_have_the_bits_of_host_ranks) {
  for (const auto kernel : {kFused, kUnfused}) {
    for (const core::DType dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
      expect_same_weights({.config = {.parameter_dtype = dtype,
                                      .optimizer = {.kernel = kernel,
                                                    .state_dtype = core::DType::kBFloat16,
                                                    .rounding_seed = 7}}});
    }
  }
  expect_same_weights({.config = {.bucket_mb = kSmallBuckets,
                                  .optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd,
                                                .state_dtype = core::DType::kBFloat16,
                                                .rounding_seed = 7}}});
}

// The processor's operators fuse a product and a sum here, the device's do not.
TEST_F(DevicePathTest, plain_sgd_is_that_of_host_ranks) {
  struct Case {
    double momentum;
    core::DType state_dtype;
    double distance;
  };
  // A draw that falls on the other side moves a momentum by its last bit.
  for (const Case& one :
       {Case{0.0, core::DType::kFloat32, 1e-6}, Case{0.9, core::DType::kFloat32, 1e-6},
        Case{0.9, core::DType::kBFloat16, 1e-3}}) {
    const ToyOptions options{
        .config = {.optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd,
                                 .kernel = kUnfused,
                                 .momentum = one.momentum,
                                 .state_dtype = one.state_dtype}}};
    comm::SingleCommunicator alone;
    const auto expected = torch::tensor(train_toy(alone, options).weights);
    const auto found = torch::tensor(train_toy(communicator, on_device(options)).weights);
    EXPECT_LT((found - expected).norm().item<double>(),
              one.distance * expected.norm().item<double>());
  }
}

TEST_F(DevicePathTest, squares_are_one_launch_after_all_sums_and_the_update_comes_after_them) {
  const ToyOptions options = on_device({.config = {.bucket_mb = kSmallBuckets}});
  ToyNet net(0);
  parallel::DataParallel replicas(net, communicator, options.config, options.tools);

  run_toy_step(net, replicas, communicator, options, 1);

  EXPECT_GT(driver->count_of("all_reduce"), 1u);
  EXPECT_EQ(driver->count_of("squares"), 1u);
  EXPECT_TRUE(driver->is_after("squares", "all_reduce"));
  EXPECT_TRUE(driver->is_after("adamw", "squares"));
  EXPECT_TRUE(driver->is_after("adamw", "all_reduce"));
  EXPECT_TRUE(driver->is_after("adamw", "settle"));
  EXPECT_NE(driver->stream_of("all_reduce"), compute);
  EXPECT_EQ(driver->stream_of("adamw"), compute);
}

TEST_F(DevicePathTest, collective_of_the_next_step_comes_after_the_update) {
  for (const GradientSync sync :
       {GradientSync::kPerParameter, GradientSync::kBucketed, GradientSync::kOverlapped}) {
    const ToyOptions options = on_device({.config = {.gradient_sync = sync}});
    ToyNet net(0);
    parallel::DataParallel replicas(net, communicator, options.config, options.tools);
    const std::string first = "end of step 1, " + std::to_string(static_cast<int>(sync)),
                      second = "end of step 2, " + std::to_string(static_cast<int>(sync));
    run_toy_step(net, replicas, communicator, options, 1);
    driver->enqueue(first, compute);

    run_toy_step(net, replicas, communicator, options, 2);
    driver->enqueue(second, compute);

    EXPECT_TRUE(driver->is_after("all_reduce", first)) << first;
    EXPECT_TRUE(driver->is_after(second, "all_reduce")) << second;
    EXPECT_TRUE(driver->is_after(second, first)) << second;
  }
}

TEST_F(DevicePathTest, steps_never_wait_for_the_device_in_any_toggle) {
  for (const GradientSync sync :
       {GradientSync::kPerParameter, GradientSync::kBucketed, GradientSync::kOverlapped}) {
    for (const auto& [kernel, state_dtype] :
         {std::pair{kFused, core::DType::kFloat32}, std::pair{kUnfused, core::DType::kFloat32},
          std::pair{kFused, core::DType::kBFloat16}, std::pair{kUnfused, core::DType::kBFloat16}}) {
      const ToyOptions options =
          on_device({.config = {.gradient_sync = sync,
                                .bucket_mb = kSmallBuckets,
                                .optimizer = {.kernel = kernel, .state_dtype = state_dtype},
                                .loss_scale = kDynamic},
                     .overflow_step = 2});
      ToyNet net(0);
      parallel::DataParallel replicas(net, communicator, options.config, options.tools);
      const int synchronizations = driver->synchronizations;
      driver->hold();  // nothing on the device is ever done

      for (int step = 1; step <= 3; ++step) {
        const ToyStep done = run_toy_step(net, replicas, communicator, options, step);
        EXPECT_TRUE(std::isnan(done.statistics.grad_norm)) << "it was read";
      }

      EXPECT_EQ(driver->synchronizations, synchronizations);
      driver->release();
    }
  }
}

TEST_F(DevicePathTest, norm_on_the_device_is_that_of_host_ranks) {
  comm::SingleCommunicator alone;
  const double expected = train_toy(alone, {.steps = 1}).norms.at(0);
  const ToyOptions options = on_device({});
  ToyNet net(0);
  parallel::DataParallel replicas(net, communicator, options.config, options.tools);

  run_toy_step(net, replicas, communicator, options, 1);

  EXPECT_EQ(replicas.device_scalars()[0].item<double>(), expected);
}

TEST_F(DevicePathTest, norm_that_is_not_finite_leaves_weights_and_names_the_step) {
  for (const auto algorithm :
       {parallel::OptimizerAlgorithm::kAdamW, parallel::OptimizerAlgorithm::kSgd}) {
    for (const auto& [kernel, state_dtype] :
         {std::pair{kFused, core::DType::kFloat32}, std::pair{kUnfused, core::DType::kFloat32},
          std::pair{kFused, core::DType::kBFloat16}, std::pair{kUnfused, core::DType::kBFloat16}}) {
      const ToyOptions options = on_device(
          {.config = {.optimizer = {
                          .algorithm = algorithm, .kernel = kernel, .state_dtype = state_dtype}}});
      ToyNet net(0);
      parallel::DataParallel replicas(net, communicator, options.config, options.tools);
      run_toy_step(net, replicas, communicator, options, 1);
      const auto before = weights_of(replicas);
      const auto moment = replicas.states().front().moments.front().tensor.clone();

      replicas.begin_micro_step(0);
      (toy_loss(net, make_toy_batch(0, 12)) * std::numeric_limits<float>::infinity()).backward();
      replicas.finish_backward();
      replicas.update(0.1);
      run_toy_step(net, replicas, communicator, options, 3);

      EXPECT_EQ(replicas.first_bad_step(), 2);
      EXPECT_EQ(weights_of(replicas), before);
      EXPECT_TRUE(torch::equal(replicas.states().front().moments.front().tensor, moment));

      replicas.set_steps_taken(1);  // what a restore does with the state of then
      run_toy_step(net, replicas, communicator, options, 2);
      EXPECT_EQ(replicas.first_bad_step(), 0);
      EXPECT_NE(weights_of(replicas), before);
    }
  }
}

TEST_F(DevicePathTest, failed_collective_surfaces_in_the_step) {
  const ToyOptions options = on_device({});
  ToyNet net(0);
  parallel::DataParallel replicas(net, communicator, options.config, options.tools);
  run_toy_step(net, replicas, communicator, options, 1);
  api->launch_failure = "unhandled cuda error";

  EXPECT_THROW(run_toy_step(net, replicas, communicator, options, 2), core::CollectiveError);
}

}  // namespace
}  // namespace sidestream::test
