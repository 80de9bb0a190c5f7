// n ranks against one rank on the joined batch, and every synchroniser and bucket size against each
// other.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::GradientSync;

void expect_close(const std::vector<double>& expected, const std::vector<double>& found,
                  double tolerance) {
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(expected[i], found[i], tolerance) << "step " << i + 1;
}

TEST(OracleTest, train_onSeveralRanks_equalsOneRankOnTheJoinedBatch) {
  const ToyResult one = train_on_threads(1, {});
  ASSERT_LT(one.losses.back(), 0.8 * one.losses.front())
      << "the toy must learn for this to mean anything";
  for (const int ranks : {2, 3, 4}) {
    const ToyResult several = train_on_threads(ranks, {});

    expect_close(one.losses, several.losses, 1e-5);
    expect_close(one.norms, several.norms, 1e-4);
  }
}

TEST(OracleTest, train_withAccumulation_equalsTheBiggerBatch) {
  const ToyResult one = train_on_threads(1, {});
  for (const int micro_steps : {1, 2, 3}) {
    const ToyResult accumulated =
        train_on_threads(2, {.config = {.grad_accumulation = micro_steps}});

    expect_close(one.losses, accumulated.losses, 1e-5);
  }
}

// Of one rank: gradients travel in bf16, but micro-steps are added before they are rounded.
TEST(OracleTest, accumulation_roundsToTheReduceDtypeOnce) {
  const auto weights_after = [](core::DType reduce, double lr) {
    parallel::DataParallelConfig config{.reduce_dtype = reduce, .grad_accumulation = 64};
    config.optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd,
                        .weight_decay = 0,
                        .momentum = 0,
                        .grad_clip = 0};
    return train_on_threads(1, {.steps = 1, .samples_per_step = 128, .lr = lr, .config = config})
        .weights;
  };
  const std::vector<float> before = weights_after(core::DType::kFloat32, 0);
  const std::vector<float> whole = weights_after(core::DType::kFloat32, 1);
  const std::vector<float> rounded = weights_after(core::DType::kBFloat16, 1);
  int changed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const float change = whole[i] - before[i];
    changed += change != 0;
    EXPECT_NEAR(rounded[i] - before[i], change, std::abs(change) / 256 + 1e-6) << i;
  }
  EXPECT_GT(changed, 100);
}

struct NarrowSum {
  core::DType dtype;
  int micro_steps;
};

// So many that a running sum in the parameter dtype stops growing before the last one.
TEST(OracleTest, accumulation_ofManyMicroStepsIn16Bits_isTheirMean) {
  for (const NarrowSum& sum :
       {NarrowSum{core::DType::kBFloat16, 1024}, NarrowSum{core::DType::kFloat16, 4096}}) {
    run_ranks(1, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      parallel::DataParallel replicas(
          net, communicator,
          {.unused_parameters = parallel::UnusedParameters::kAllow,
           .parameter_dtype = sum.dtype,
           .grad_accumulation = sum.micro_steps,
           .optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd,
                         .weight_decay = 0,
                         .momentum = 0,
                         .grad_clip = 0}});
      const std::vector<float> before = weights_of(replicas);
      for (int micro_step = 0; micro_step < sum.micro_steps; ++micro_step) {
        replicas.begin_micro_step(micro_step);
        net.first->weight.sum().backward();  // a gradient of one
      }
      replicas.finish_backward();
      replicas.update(1.0);

      const std::vector<float> after = weights_of(replicas);
      for (std::int64_t i = 0; i < net.first->weight.numel(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_NEAR(before[at] - after[at], 1.0, 1e-6) << core::name_of(sum.dtype) << " " << i;
      }
    });
  }
}

TEST(OracleTest, train_withAnySynchroniserAndBucketSize_isBitIdentical) {
  for (const int micro_steps : {1, 2}) {
    const ToyResult baseline =
        train_on_threads(3, {.samples_per_step = 12,
                             .config = {.gradient_sync = GradientSync::kPerParameter,
                                        .grad_accumulation = micro_steps}});
    for (const GradientSync kind : {GradientSync::kBucketed, GradientSync::kOverlapped}) {
      for (const std::optional<double> bucket_mb :
           {std::optional<double>(), {kSmallBuckets}, {1e-3}}) {
        const ToyResult other = train_on_threads(3, {.samples_per_step = 12,
                                                     .config = {.gradient_sync = kind,
                                                                .bucket_mb = bucket_mb,
                                                                .first_bucket_mb = kSmallBuckets,
                                                                .grad_accumulation = micro_steps}});

        EXPECT_EQ(baseline.losses, other.losses);
        EXPECT_EQ(baseline.norms, other.norms);
        EXPECT_EQ(baseline.weights, other.weights);
      }
    }
  }
}

constexpr parallel::OptimizerConfig kNarrowState{.state_dtype = core::DType::kBFloat16,
                                                 .rounding_seed = 1337};

TEST(OracleTest, train_withBf16Moments_isBitIdenticalForAnySynchroniserAndBucketSize) {
  const ToyResult baseline = train_on_threads(
      3, {.config = {.gradient_sync = GradientSync::kPerParameter, .optimizer = kNarrowState}});
  for (const double bucket_mb : {kSmallBuckets, 1e-3, 25.0}) {
    const ToyResult other =
        train_on_threads(3, {.config = {.bucket_mb = bucket_mb, .optimizer = kNarrowState}});

    EXPECT_EQ(baseline.losses, other.losses);
    EXPECT_EQ(baseline.weights, other.weights);
  }
}

TEST(OracleTest, train_withBf16Moments_staysNearFp32) {
  const ToyResult exact = train_on_threads(1, {});
  for (const int ranks : {1, 2, 3}) {
    const ToyResult rounded = train_on_threads(ranks, {.config = {.optimizer = kNarrowState}});

    expect_close(exact.losses, rounded.losses, 0.01 * exact.losses.front());
    EXPECT_NE(exact.weights, rounded.weights);
  }
}

// With the same batch on every rank, and a number of ranks that divides exactly, gradients have the
// bits of one rank: so must have all that is drawn.
TEST(OracleTest, train_withBf16Moments_drawsTheSameOnAnyNumberOfRanks) {
  const auto train = [](int ranks) {
    std::vector<float> weights;
    run_ranks(ranks, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      parallel::DataParallel replicas(net, communicator, {.optimizer = kNarrowState});
      for (int step = 1; step <= 10; ++step) {
        replicas.begin_micro_step(0);
        toy_loss(net, make_toy_batch(step * 8, 8)).backward();
        replicas.finish_backward();
        replicas.update(1e-2);
      }
      if (communicator.rank() == 0) weights = weights_of(replicas);
    });
    return weights;
  };
  const std::vector<float> one = train(1);

  EXPECT_EQ(one, train(2));
  EXPECT_EQ(one, train(4));
}

TEST(OracleTest, train_inBf16WithMasterWeights_staysNearFp32) {
  const ToyResult exact = train_on_threads(2, {});

  const ToyResult rounded =
      train_on_threads(2, {.config = {.parameter_dtype = core::DType::kBFloat16}});

  expect_close(exact.losses, rounded.losses, 3e-2);
  EXPECT_NE(exact.weights, rounded.weights);
}

TEST(OracleTest, train_inBf16WithFp32Sums_isBitIdenticalAcrossSynchronisers) {
  const auto options = [](GradientSync kind, int micro_steps) {
    return ToyOptions{.config = {.gradient_sync = kind,
                                 .bucket_mb = kSmallBuckets,
                                 .parameter_dtype = core::DType::kBFloat16,
                                 .reduce_dtype = core::DType::kFloat32,
                                 .grad_accumulation = micro_steps}};
  };
  for (const int micro_steps : {1, 3}) {
    const ToyResult baseline =
        train_on_threads(2, options(GradientSync::kPerParameter, micro_steps));

    const ToyResult overlapped =
        train_on_threads(2, options(GradientSync::kOverlapped, micro_steps));

    EXPECT_EQ(baseline.losses, overlapped.losses);
    EXPECT_EQ(baseline.weights, overlapped.weights);
  }
}

TEST(OracleTest, train_fusedAndUnfused_agreeInTraining) {
  for (const auto algorithm :
       {parallel::OptimizerAlgorithm::kAdamW, parallel::OptimizerAlgorithm::kSgd}) {
    const auto options = [&](parallel::OptimizerKernel kernel) {
      return ToyOptions{.config = {.optimizer = {.algorithm = algorithm, .kernel = kernel}}};
    };
    const ToyResult fused = train_on_threads(2, options(parallel::OptimizerKernel::kFused));
    const ToyResult unfused = train_on_threads(2, options(parallel::OptimizerKernel::kUnfused));

    expect_close(fused.losses, unfused.losses, 1e-5);
    EXPECT_LT(fused.losses.back(), fused.losses.front());
  }
}

}  // namespace
}  // namespace sidestream::test
