// What DataParallel promises beyond sums: one start, order of buckets, states, clipping.
#include "parallel/data_parallel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::DataParallelConfig;
using ::testing::HasSubstr;

TEST(DataParallelTest, construct_ranksWithOtherWeights_takeRankZeros) {
  const ToyNet expected(0);
  run_ranks(3, [&](ThreadCommunicator& communicator) {
    ToyNet net(communicator.rank());

    const DataParallel replicas(net, communicator, {});

    for (const auto& item : expected.named_parameters()) {
      EXPECT_TRUE(item.value().equal(net.named_parameters()[item.key()])) << item.key();
    }
  });
}

TEST(DataParallelTest, construct_buffersAndFrozenParameters_takeRankZeros) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    const double value = 3 + communicator.rank();
    net.register_buffer("running", torch::full({3, 2}, value, torch::kFloat64));
    net.register_parameter("frozen", torch::full({5}, value), false);

    const DataParallel replicas(net, communicator, {});

    EXPECT_TRUE(net.named_buffers()["running"].eq(3).all().item<bool>());
    EXPECT_TRUE(net.named_parameters()["frozen"].eq(3).all().item<bool>());
    EXPECT_EQ(replicas.states().size(), 8u);
  });
}

TEST(DataParallelTest, construct_tiedParameters_areHeldOnce) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    net.register_parameter("tied", net.first->weight);

    const DataParallel replicas(net, communicator, {});

    EXPECT_EQ(replicas.states().size(), 8u);
  });
}

TEST(DataParallelTest, construct_stateThatCannotBeShared_isSharded) {
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      const DataParallel asked(net, communicator, {.state_sharing = parallel::StateSharing::kOn});
      EXPECT_EQ(asked.shards_state(), ranks > 1);
      EXPECT_FALSE(asked.shares_weights());
    });
  }
}

TEST(DataParallelTest, construct_stateThatNobodyAskedToShare_isWhole) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    const DataParallel replicas(net, communicator, {});
    EXPECT_FALSE(replicas.shards_state());
  });
}

TEST(DataParallelTest, construct_sharedStateOfPlainOperators_throws) {
  const auto errors = run_ranks_collecting(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    const DataParallel replicas(net, communicator,
                                {.state_sharing = parallel::StateSharing::kOn,
                                 .optimizer = {.kernel = parallel::OptimizerKernel::kUnfused}});
  });

  EXPECT_THAT(message_of(errors[0]), HasSubstr("--fused-optimizer on"));
}

TEST(DataParallelTest, construct_nothingToTrain_throws) {
  const auto errors = run_ranks_collecting(1, [](ThreadCommunicator& communicator) {
    torch::nn::Module empty;
    const DataParallel replicas(empty, communicator, {});
  });

  EXPECT_THAT(message_of(errors[0]), HasSubstr("nothing to train"));
}

TEST(DataParallelTest, beginMicroStep_secondStep_buildsBucketsInObservedOrder) {
  run_ranks(3, [](ThreadCommunicator& communicator) {
    const ToyOptions options{.config = {.bucket_mb = kSmallBuckets}};
    ToyNet net(0);
    DataParallel replicas(net, communicator, options.config);
    const std::vector<std::string> reversed = replicas.bucket_order();
    run_toy_step(net, replicas, communicator, options, 1);
    EXPECT_EQ(replicas.bucket_order(), reversed);

    run_toy_step(net, replicas, communicator, options, 2);

    // Gradients arrive from the loss backwards: the first layer's come last, before or after it
    // stands the branch.
    const std::vector<std::string> observed = replicas.bucket_order();
    EXPECT_TRUE(
        std::is_permutation(observed.begin(), observed.end(), reversed.begin(), reversed.end()));
    const auto place = [&](const char* name) {
      return std::find(observed.begin(), observed.end(), name) - observed.begin();
    };
    EXPECT_LT(place("second.weight"), place("norm.weight"));
    EXPECT_LT(place("norm.weight"), place("first.weight"));
    for (const std::string& other : communicator.exchange(observed.front()))
      EXPECT_EQ(other, observed.front());
    const std::vector<std::string> lines = replicas.describe_buckets();
    EXPECT_THAT(lines.front(), HasSubstr(observed.front()));
    EXPECT_GT(lines.size(), 3u);
  });
}

// Collectives that take ten seconds whatever their size: one bucket is best.
TEST(DataParallelTest, slowCollectives_withBucketsChosenHere_areCutAnewAndChangeNoNumber) {
  std::vector<std::vector<float>> weights(2);
  for (const std::size_t claims : {0u, 1u}) {
    run_ranks(3, [&](ThreadCommunicator& communicator) {
      const ToyOptions options{.config = {.first_bucket_mb = kSmallBuckets}};
      if (claims == 1) communicator.claim_to_take(std::chrono::seconds(10));
      ToyNet net(0);
      DataParallel replicas(net, communicator, options.config);
      ASSERT_GT(replicas.describe_buckets().size(), 1u);
      std::string news;
      for (int step = 1; step <= 8; ++step) {
        run_toy_step(net, replicas, communicator, options, step);
        news += replicas.take_news();
      }
      if (claims == 1) {
        EXPECT_THAT(replicas.describe_buckets(), ::testing::SizeIs(1));
        EXPECT_THAT(news, HasSubstr("buckets: 1 instead of 2"));
      } else {
        EXPECT_EQ(news, "");
      }
      replicas.check_replicas();
      if (communicator.rank() == 0) weights[claims] = weights_of(replicas);
    });
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(DataParallelTest, backward_ranksWithOtherGradientOrder_startBucketsAlike) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    const DataParallelConfig config{.bucket_mb = kSmallBuckets};
    ToyNet net(0);
    DataParallel replicas(net, communicator, config);
    for (int step = 0; step < 3; ++step) {
      replicas.begin_micro_step(0);
      const torch::Tensor inputs_bf = make_toy_batch(0, 4).inputs_bf;
      // Autograd visits what was made last first.
      const torch::Tensor left =
          communicator.rank() == 0 ? net.branch(inputs_bf) : net.first(inputs_bf);
      const torch::Tensor right =
          communicator.rank() == 0 ? net.first(inputs_bf) : net.branch(inputs_bf);
      const torch::Tensor hidden = communicator.rank() == 0 ? right : left;
      (left.sum() + right.sum() + net.second(net.norm(hidden)).square().sum()).backward();
      replicas.finish_backward();
      replicas.update(1e-3);
    }
    replicas.check_replicas();
    const std::vector<int>& buckets = communicator.reduced_buckets();
    EXPECT_TRUE(std::is_sorted(buckets.begin(),
                               buckets.begin() + static_cast<std::ptrdiff_t>(buckets.size() / 3)));
  });
}

TEST(DataParallelTest, accumulation_communicatesInTheLastMicroStepOnly) {
  for (const auto sync : {parallel::GradientSync::kPerParameter, parallel::GradientSync::kBucketed,
                          parallel::GradientSync::kOverlapped}) {
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallel replicas(
          net, communicator,
          {.gradient_sync = sync, .bucket_mb = kSmallBuckets, .grad_accumulation = 3});
      for (int micro_step = 0; micro_step < 3; ++micro_step) {
        EXPECT_THAT(communicator.reduced_buckets(), ::testing::IsEmpty()) << micro_step;
        replicas.begin_micro_step(micro_step);
        toy_loss(net, make_toy_batch(communicator.rank(), 4)).backward();
      }
      replicas.finish_backward();
      EXPECT_THAT(communicator.reduced_buckets(), ::testing::Not(::testing::IsEmpty()));
    });
  }
}

TEST(DataParallelTest, rankWithoutABackwardInTheFirstStep_settlesTheOrderWithTheOthers) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(
        net, communicator,
        {.bucket_mb = kSmallBuckets, .unused_parameters = parallel::UnusedParameters::kAllow});
    for (int step = 1; step <= 3; ++step) {
      replicas.begin_micro_step(0);
      if (step > 1 || communicator.rank() == 0) toy_loss(net, make_toy_batch(0, 4)).backward();
      replicas.finish_backward();
      replicas.update(1e-3);
    }
    replicas.check_replicas();
  });
}

TEST(DataParallelTest, setBucketOrder_beforeTheFirstStep_changesNoNumber) {
  std::vector<std::vector<float>> weights(2);
  for (const std::size_t given : {0u, 1u}) {
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      const ToyOptions options{.config = {.bucket_mb = kSmallBuckets}};
      ToyNet net(0);
      DataParallel replicas(net, communicator, options.config);
      std::vector<std::string> order = replicas.bucket_order();
      std::sort(order.begin(), order.end());
      if (given == 1) replicas.set_bucket_order(order);
      for (int step = 1; step <= 5; ++step)
        run_toy_step(net, replicas, communicator, options, step);
      if (given == 1) {
        EXPECT_EQ(replicas.bucket_order(), order);
      }
      if (communicator.rank() == 0) weights[given] = weights_of(replicas);
    });
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(DataParallelTest, setBucketOrder_withOtherNames_throws) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    std::vector<std::string> order = replicas.bucket_order();

    order.back() = order.front();
    EXPECT_THROW(replicas.set_bucket_order(order), core::ConfigError);
    order.pop_back();
    EXPECT_THROW(replicas.set_bucket_order(order), core::ConfigError);
  });
}

// Saves after step 3, loads into a fresh replica, and goes on to step 6.
std::vector<float> train_with_restart(comm::Communicator& communicator, const ToyOptions& options) {
  std::vector<parallel::ParameterState> saved;
  {
    ToyNet net(0);
    DataParallel replicas(net, communicator, options.config);
    for (int step = 1; step <= 3; ++step) run_toy_step(net, replicas, communicator, options, step);
    for (const parallel::ParameterState& state : replicas.states()) {
      saved.push_back(
          {.name = state.name, .parameter = {}, .master = state.master.clone(), .moments = {}});
      for (const auto& [name, moment] : state.moments)
        saved.back().moments.emplace_back(name, moment.clone());
    }
  }
  ToyNet net(5);
  DataParallel replicas(net, communicator, options.config);
  std::vector<parallel::ParameterState> states = replicas.states();
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(states[i].name, saved[i].name);
    states[i].master.copy_(saved[i].master);
    for (std::size_t m = 0; m < states[i].moments.size(); ++m) {
      states[i].moments[m].tensor.copy_(saved[i].moments[m].tensor);
    }
  }
  replicas.refresh_parameters();
  replicas.set_steps_taken(3);
  for (int step = 4; step <= 6; ++step) run_toy_step(net, replicas, communicator, options, step);
  return weights_of(replicas);
}

TEST(DataParallelTest, states_savedAndRestored_continueBitExactly) {
  struct Types {
    core::DType parameters;
    core::DType state;
  };
  for (const Types& types : {Types{core::DType::kFloat32, core::DType::kFloat32},
                             Types{core::DType::kBFloat16, core::DType::kFloat32},
                             Types{core::DType::kFloat32, core::DType::kBFloat16}}) {
    for (const auto kernel :
         {parallel::OptimizerKernel::kFused, parallel::OptimizerKernel::kUnfused}) {
      const ToyOptions options{
          .steps = 6,
          .config = {.parameter_dtype = types.parameters,
                     .optimizer = {.kernel = kernel, .state_dtype = types.state}}};
      run_ranks(2, [&](ThreadCommunicator& communicator) {
        std::vector<float> straight;
        {
          ToyNet net(0);
          DataParallel replicas(net, communicator, options.config);
          for (int step = 1; step <= 6; ++step)
            run_toy_step(net, replicas, communicator, options, step);
          straight = weights_of(replicas);
        }
        EXPECT_EQ(straight, train_with_restart(communicator, options));
      });
    }
  }
}

TEST(DataParallelTest, update_longGradient_isClippedToTheLimit) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    const auto change_of = [&](double limit) {
      const ToyOptions options{
          .lr = 1,
          .config = {.optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd,
                                   .weight_decay = 0,
                                   .momentum = 0,
                                   .grad_clip = limit}}};
      ToyNet net(0);
      DataParallel replicas(net, communicator, options.config);
      const std::vector<float> before = weights_of(replicas);
      const ToyStep step = run_toy_step(net, replicas, communicator, options, 1);
      const std::vector<float> after = weights_of(replicas);
      double squares = 0;
      for (std::size_t i = 0; i < after.size(); ++i)
        squares += std::pow(double{after[i]} - before[i], 2);
      return std::pair(std::sqrt(squares), step.statistics.grad_norm);
    };
    const auto [free_change, free_norm] = change_of(0);
    const auto [clipped_change, clipped_norm] = change_of(free_norm / 4);

    EXPECT_NEAR(free_change, free_norm, 1e-5);
    EXPECT_NEAR(clipped_change, free_norm / 4, 1e-5);
    EXPECT_EQ(clipped_norm, free_norm);
  });
}

TEST(DataParallelTest, destroy_leavesAModuleThatWorksOnItsOwn) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    {
      DataParallel replicas(net, communicator, {});
      run_toy_step(net, replicas, communicator, {}, 1);
    }

    EXPECT_FALSE(net.first->weight.grad().defined());
    toy_loss(net, make_toy_batch(0, 4)).backward();
    EXPECT_TRUE(net.first->weight.grad().defined());
  });
}

}  // namespace
}  // namespace sidestream::test
