// Parameters that a step's loss does not use, where that is allowed.
#include <gtest/gtest.h>

#include <vector>

#include "parallel/data_parallel.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::UnusedParameters;

TEST(UnusedParametersTest, finishBackward_allowed_countAsZero) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator,
                          {.gradient_sync = parallel::GradientSync::kBucketed,
                           .unused_parameters = UnusedParameters::kAllow});
    net.use_branch = communicator.rank() == 0;
    replicas.begin_micro_step(0);
    toy_loss(net, make_toy_batch(0, 4)).backward();
    const bool has_gradient = communicator.rank() == 0;
    EXPECT_EQ(net.branch->weight.grad().defined(), has_gradient);
    const torch::Tensor mine = has_gradient ? net.branch->weight.grad().clone() : torch::Tensor();

    replicas.finish_backward();

    if (has_gradient) {
      EXPECT_TRUE(net.branch->weight.grad().equal(mine));
    }
    replicas.update(1e-2);
    replicas.check_replicas();
  });
}

// Of the branch where the ranks use it in turns; those that do not bring a gradient of zeros
// themselves, or none.
enum class Unused { kHasNoGradient, kHasZeros };

std::vector<float> trained_with_a_branch_in_turns(parallel::GradientSync kind, Unused unused) {
  std::vector<float> weights;
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator,
                          {.gradient_sync = kind, .unused_parameters = UnusedParameters::kAllow});
    for (int step = 0; step < 4; ++step) {
      net.use_branch = communicator.rank() == step % 2;
      const ToyBatch batch = make_toy_batch(step * 8 + communicator.rank() * 4, 4);
      replicas.begin_micro_step(0);
      torch::Tensor loss = toy_loss(net, batch);
      if (!net.use_branch && unused == Unused::kHasZeros)
        loss = loss + (net.branch(batch.inputs_bf) * 0).sum();
      loss.backward();
      replicas.finish_backward();
      replicas.update(1e-2);
    }
    if (communicator.rank() == 0) weights = weights_of(replicas);
  });
  return weights;
}

// Nothing of an earlier step's gradient is added.
TEST(UnusedParametersTest, finishBackward_usedByEarlierSteps_countAsZero) {
  using parallel::GradientSync;
  for (const GradientSync kind :
       {GradientSync::kPerParameter, GradientSync::kBucketed, GradientSync::kOverlapped}) {
    EXPECT_EQ(trained_with_a_branch_in_turns(kind, Unused::kHasNoGradient),
              trained_with_a_branch_in_turns(kind, Unused::kHasZeros));
  }
}

TEST(UnusedParametersTest, train_allowed_goesOnAfterBucketsAreRebuilt) {
  run_ranks(3, [](ThreadCommunicator& communicator) {
    const ToyOptions options{
        .config = {.bucket_mb = kSmallBuckets, .unused_parameters = UnusedParameters::kAllow}};
    ToyNet net(0);
    DataParallel replicas(net, communicator, options.config);
    for (int step = 1; step <= 5; ++step) {
      net.use_branch = communicator.rank() == step % 3;
      run_toy_step(net, replicas, communicator, options, step);
    }
    replicas.check_replicas();
  });
}

}  // namespace
}  // namespace sidestream::test
