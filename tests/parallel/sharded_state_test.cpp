// State that each rank keeps in slices, against state that every rank keeps whole: the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <thread>

#include "core/base/error.hpp"
#include "parallel/own_ranges.hpp"
#include "tests/core/optim/host_kernels.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::DataParallelConfig;
using parallel::GradientSync;
using parallel::OptimizerAlgorithm;
using parallel::StateSharing;
using ::testing::HasSubstr;

constexpr std::int64_t kWide = 6007;  // several blocks of a sum in the large weights

ToyOptions with(ToyOptions options, StateSharing sharing) {
  options.config.state_sharing = sharing;
  return options;
}

// The reference runs without kernels of a device.
void expect_same_bits(int ranks, const ToyOptions& options) {
  ToyOptions whole_options = with(options, StateSharing::kOff);
  whole_options.tools = {};
  const ToyResult whole = train_on_threads(ranks, whole_options);

  const ToyResult sharded = train_on_threads(ranks, with(options, StateSharing::kSharded));

  EXPECT_EQ(whole.losses, sharded.losses);
  if (options.tools.kernels == nullptr) {
    EXPECT_EQ(whole.norms, sharded.norms);
  }
  EXPECT_EQ(whole.weights, sharded.weights);
}

TEST(ShardedStateTest, train_withAnySynchroniserAndRanks_isBitIdentical) {
  for (const int ranks : {1, 2, 3}) {
    for (const GradientSync kind :
         {GradientSync::kPerParameter, GradientSync::kBucketed, GradientSync::kOverlapped}) {
      expect_same_bits(
          ranks,
          {.steps = 4, .hidden = kWide, .config = {.gradient_sync = kind, .bucket_mb = 0.1}});
    }
    expect_same_bits(ranks, {.steps = 4, .hidden = kWide});
  }
}

TEST(ShardedStateTest, train_withFewerElementsThanABlock_isBitIdentical) {
  for (const int ranks : {2, 3}) expect_same_bits(ranks, {.config = {.bucket_mb = kSmallBuckets}});
}

TEST(ShardedStateTest, train_withAnyTypeAndAlgorithm_isBitIdentical) {
  using core::DType;
  for (const auto algorithm : {OptimizerAlgorithm::kAdamW, OptimizerAlgorithm::kSgd}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const DType reduce : {DType::kFloat32, DType::kBFloat16}) {
        expect_same_bits(3, {.steps = 4,
                             .hidden = kWide,
                             .config = {.bucket_mb = 0.1,
                                        .parameter_dtype = dtype,
                                        .reduce_dtype = reduce,
                                        .optimizer = {.algorithm = algorithm}}});
      }
    }
  }
  expect_same_bits(
      2, {.steps = 4,
          .hidden = kWide,
          .config = {.optimizer = {.algorithm = OptimizerAlgorithm::kSgd, .momentum = 0}}});
}

TEST(ShardedStateTest, train_inHalfPrecision_isBitIdentical) {
  for (const auto algorithm : {OptimizerAlgorithm::kAdamW, OptimizerAlgorithm::kSgd}) {
    for (const auto reduce : {core::DType::kFloat16, core::DType::kFloat32}) {
      for (const bool on_device : {false, true}) {
        ToyOptions options{.steps = 5,
                           .hidden = kWide,
                           .config = {.bucket_mb = 0.1,
                                      .parameter_dtype = core::DType::kFloat16,
                                      .reduce_dtype = reduce,
                                      .optimizer = {.algorithm = algorithm},
                                      .loss_scale = {.kind = optim::LossScaling::kDynamic,
                                                     .scale = 1024,
                                                     .interval = 2}},
                           .overflow_step = 3};
        if (on_device) options.tools = {.kernels = std::make_shared<optim::HostKernels>()};
        expect_same_bits(3, options);
      }
    }
  }
}

TEST(ShardedStateTest, train_withAccumulation_isBitIdentical) {
  expect_same_bits(
      2, {.steps = 4, .hidden = kWide, .config = {.bucket_mb = 0.1, .grad_accumulation = 3}});
}

TEST(ShardedStateTest, train_clippedInEveryStep_isBitIdentical) {
  expect_same_bits(3, {.steps = 4,
                       .hidden = kWide,
                       .config = {.bucket_mb = 0.1, .optimizer = {.grad_clip = 1e-2}}});
}

TEST(ShardedStateTest, train_withKernelsOfADevice_isBitIdentical) {
  for (const auto algorithm : {OptimizerAlgorithm::kAdamW, OptimizerAlgorithm::kSgd}) {
    for (const core::DType dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
      expect_same_bits(3, {.steps = 4,
                           .hidden = kWide,
                           .config = {.bucket_mb = 0.1,
                                      .parameter_dtype = dtype,
                                      .optimizer = {.algorithm = algorithm, .grad_clip = 1e-2}},
                           .tools = {.kernels = std::make_shared<optim::HostKernels>()}});
    }
  }
}

TEST(ShardedStateTest, train_withAnUnusedBranch_isBitIdentical) {
  std::map<StateSharing, std::vector<float>> weights;
  for (const StateSharing sharing : {StateSharing::kOff, StateSharing::kSharded}) {
    run_ranks(3, [&](ThreadCommunicator& communicator) {
      const ToyOptions options{.hidden = kWide,
                               .config = {.bucket_mb = 0.1,
                                          .unused_parameters = parallel::UnusedParameters::kAllow,
                                          .state_sharing = sharing}};
      ToyNet net(0, kWide);
      DataParallel replicas(net, communicator, options.config);
      for (int step = 1; step <= 4; ++step) {
        net.use_branch = communicator.rank() == step % 3;
        run_toy_step(net, replicas, communicator, options, step);
      }
      replicas.check_replicas();
      const auto mine = state_of(replicas);
      if (communicator.rank() == 0) weights[sharing] = mine;
    });
  }
  EXPECT_EQ(weights[StateSharing::kOff], weights[StateSharing::kSharded]);
}

// The order of buckets is settled before step 2, and set anew after step 4: moments move along.
TEST(ShardedStateTest, setBucketOrder_inTheMiddle_movesTheState) {
  for (const core::DType dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
    std::map<StateSharing, std::vector<float>> states;
    for (const StateSharing sharing : {StateSharing::kOff, StateSharing::kSharded}) {
      run_ranks(3, [&](ThreadCommunicator& communicator) {
        const ToyOptions options{
            .hidden = kWide,
            .config = {.bucket_mb = 0.1, .parameter_dtype = dtype, .state_sharing = sharing}};
        ToyNet net(0, kWide);
        DataParallel replicas(net, communicator, options.config);
        for (int step = 1; step <= 4; ++step)
          run_toy_step(net, replicas, communicator, options, step);
        std::vector<std::string> order = replicas.bucket_order();
        std::sort(order.begin(), order.end());
        replicas.set_bucket_order(order);
        for (int step = 5; step <= 6; ++step)
          run_toy_step(net, replicas, communicator, options, step);
        const auto mine = state_of(replicas);
        if (communicator.rank() == 0) states[sharing] = mine;
      });
    }
    EXPECT_EQ(states[StateSharing::kOff], states[StateSharing::kSharded]);
  }
}

// Three steps with one kind of state on some ranks, then three with another on three ranks.
TEST(ShardedStateTest, loadStates_ofOtherRanksAndKinds_goesOnWithTheSameBits) {
  struct Part {
    int ranks;
    StateSharing sharing;
  };
  for (const core::DType dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
    const auto options_of = [&](StateSharing sharing) {
      return ToyOptions{
          .hidden = kWide,
          .config = {.bucket_mb = 0.1, .parameter_dtype = dtype, .state_sharing = sharing}};
    };
    SavedStates states;
    const auto go_on = [&](Part part) {
      std::vector<float> result;
      run_ranks(part.ranks, [&](ThreadCommunicator& communicator) {
        const ToyOptions options = options_of(part.sharing);
        ToyNet net(5, kWide);
        DataParallel replicas(net, communicator, options.config);
        restore(replicas, states, 3);
        for (int step = 4; step <= 6; ++step)
          run_toy_step(net, replicas, communicator, options, step);
        replicas.check_replicas();
        const auto mine = state_of(replicas);
        if (communicator.rank() == 0) result = mine;
      });
      return result;
    };
    for (const Part first : {Part{2, StateSharing::kSharded}, Part{1, StateSharing::kOff}}) {
      run_ranks(first.ranks, [&](ThreadCommunicator& communicator) {
        const ToyOptions options = options_of(first.sharing);
        ToyNet net(0, kWide);
        DataParallel replicas(net, communicator, options.config);
        for (int step = 1; step <= 3; ++step)
          run_toy_step(net, replicas, communicator, options, step);
        SavedStates mine = saved(replicas);
        if (communicator.rank() == 0) states = std::move(mine);
      });

      EXPECT_EQ(go_on({3, StateSharing::kOff}), go_on({3, StateSharing::kSharded}));
    }
  }
}

TEST(ShardedStateTest, weightArrival_leavesWeightsOnTheirWayUntilTheyAreUsed) {
  const ToyOptions options{.steps = 5, .hidden = kWide, .config = {.bucket_mb = 0.1}};
  const ToyResult whole = train_on_threads(2, with(options, StateSharing::kOff));
  std::vector<float> weights;
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    const ToyOptions sharded = with(options, StateSharing::kSharded);
    ToyNet net(0, kWide);
    DataParallel replicas(net, communicator, sharded.config);
    const auto arrived = replicas.weight_arrival();
    for (int step = 1; step <= options.steps; ++step) {
      for (const torch::Tensor& parameter : net.parameters()) arrived(parameter);
      run_toy_step(net, replicas, communicator, sharded, step);
    }
    const auto mine = weights_of(replicas);
    if (communicator.rank() == 0) weights = mine;
  });

  EXPECT_EQ(whole.weights, weights);
}

// Who changes a weight waits first: what the other rank gathers later would undo it.
TEST(ShardedStateTest, awaitWeights_leavesNoGatherThatUndoesAChange) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    const ToyOptions options = with({.hidden = kWide}, StateSharing::kSharded);
    ToyNet net(0, kWide);
    DataParallel replicas(net, communicator, options.config);
    const auto arrived = replicas.weight_arrival();
    const torch::Tensor weight = net.parameters().front();
    replicas.begin_micro_step(0);
    toy_loss(net, make_toy_batch(0, 4)).backward();
    replicas.finish_backward();
    if (communicator.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    replicas.update(options.lr);

    replicas.await_weights();
    {
      const torch::NoGradGuard no_grad;
      weight.fill_(7);
    }

    for (const torch::Tensor& parameter : net.parameters()) arrived(parameter);
    EXPECT_TRUE(weight.eq(7).all().item<bool>());
  });
}

TEST(ShardedStateTest, states_describeWhatNoRankHoldsWhole) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0, kWide);
    DataParallel replicas(
        net, communicator,
        {.parameter_dtype = core::DType::kBFloat16, .state_sharing = StateSharing::kSharded});

    for (const parallel::ParameterState& state : replicas.states()) {
      EXPECT_TRUE(state.parameter.is_cpu());
      EXPECT_TRUE(state.master.is_meta());
      EXPECT_EQ(state.master.sizes(), state.parameter.sizes());
      ASSERT_EQ(state.moments.size(), 2u);
      EXPECT_TRUE(state.moments[1].tensor.is_meta());
    }
    EXPECT_TRUE(replicas.shards_state());
    EXPECT_FALSE(replicas.shares_weights());
  });
}

TEST(ShardedStateTest, firstBadGradient_ofOneRank_isNamedOnAll) {
  for (const StateSharing sharing : {StateSharing::kOff, StateSharing::kSharded}) {
    run_ranks(3, [&](ThreadCommunicator& communicator) {
      ToyNet net(0, kWide);
      DataParallel replicas(net, communicator, {.bucket_mb = 0.1, .state_sharing = sharing});
      replicas.begin_micro_step(0);
      torch::Tensor loss = toy_loss(net, make_toy_batch(0, 4));
      if (communicator.rank() == 2)
        loss = loss + net.second->weight.flatten()[18000] * std::numeric_limits<float>::infinity();
      loss.backward();
      replicas.finish_backward();

      EXPECT_FALSE(std::isfinite(replicas.grad_norm()));
      EXPECT_EQ(replicas.first_bad_gradient(), "second.weight");
    });
  }
}

TEST(ShardedStateTest, checkReplicas_weightsThatDiffer_areFound) {
  const auto errors = run_ranks_collecting(3, [](ThreadCommunicator& communicator) {
    ToyNet net(0, kWide);
    DataParallel replicas(net, communicator, {.state_sharing = StateSharing::kSharded});
    if (communicator.rank() == 1) replicas.states().at(2).parameter.flatten()[0].add_(1);
    replicas.check_replicas();
  });

  EXPECT_THAT(message_of(errors[0]), HasSubstr("The odd one: rank 1"));
}

}  // namespace
}  // namespace sidestream::test
