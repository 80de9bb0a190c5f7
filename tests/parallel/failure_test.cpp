// What goes wrong: errors that name it, on every rank, and no peer that hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "parallel/data_parallel.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FailureTest, construct_ranksWithOtherShapes_areRefusedByName) {
  const auto errors = run_ranks_collecting(3, [](ThreadCommunicator& communicator) {
    torch::nn::Linear net(4, communicator.rank() == 2 ? 5 : 3);
    const DataParallel replicas(*net, communicator, {});
  });

  for (const auto& error : errors) {
    EXPECT_THROW(std::rethrow_exception(error), core::AgreedError);
    EXPECT_THAT(message_of(error), AllOf(HasSubstr("Rank 2"), HasSubstr("'weight' Float [3, 4]"),
                                         HasSubstr("[5, 4]")));
  }
}

TEST(FailureTest, construct_oneRankCannot_allThrowTogether) {
  const auto errors = run_ranks_collecting(3, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    if (communicator.rank() == 1) net.to(torch::kFloat64);
    const DataParallel replicas(net, communicator, {});
  });

  for (const auto& error : errors) {
    EXPECT_THROW(std::rethrow_exception(error), core::AgreedError);
    EXPECT_THAT(message_of(error),
                AllOf(HasSubstr("Rank 1: Parameter"), HasSubstr("found Double")));
  }
}

TEST(FailureTest, construct_noRankCan_isSaidWithoutARank) {
  const auto errors = run_ranks_collecting(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    const DataParallel replicas(net, communicator, {.grad_accumulation = 0});
  });

  for (const auto& error : errors) {
    EXPECT_THROW(std::rethrow_exception(error), core::AgreedError);
    EXPECT_THAT(message_of(error), ::testing::StartsWith("--grad-accumulation"));
  }
}

TEST(FailureTest, construct_ranksWithOtherBucketSizes_areRefused) {
  const auto errors = run_ranks_collecting(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    const DataParallel replicas(net, communicator, {.bucket_mb = 1.0 + communicator.rank()});
  });

  EXPECT_THAT(message_of(errors[0]),
              AllOf(HasSubstr("expected bucket_mb 1"), HasSubstr("found bucket_mb 2")));
}

TEST(FailureTest, construct_ranksWithOtherMomentsOrDraws_areRefused) {
  const auto message_with = [](const parallel::OptimizerConfig& of_rank_1) {
    return message_of(run_ranks_collecting(2, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      parallel::DataParallelConfig config;
      if (communicator.rank() == 1) config.optimizer = of_rank_1;
      const DataParallel replicas(net, communicator, config);
    })[0]);
  };

  EXPECT_THAT(message_with({.state_dtype = core::DType::kBFloat16}),
              AllOf(HasSubstr("state_dtype float32"), HasSubstr("state_dtype bfloat16")));
  EXPECT_THAT(message_with({.rounding_seed = 3}), HasSubstr("rounding_seed 3"));
}

TEST(FailureTest, finishBackward_unusedParameter_isNamed) {
  const auto errors = run_ranks_collecting(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.bucket_mb = kSmallBuckets});
    net.use_branch = communicator.rank() == 0;
    run_toy_step(net, replicas, communicator, {}, 1);
  });

  EXPECT_THAT(message_of(errors[1]),
              AllOf(HasSubstr("2 of 8"), HasSubstr("'branch.weight', 'branch.bias'")));
  EXPECT_THROW(std::rethrow_exception(errors[0]), core::PeerError);
  EXPECT_THAT(message_of(errors[0]), HasSubstr("'branch.weight'"));
}

TEST(FailureTest, checkReplicas_flippedBit_namesParameterAndRank) {
  for (const core::DType dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
    const auto errors = run_ranks_collecting(3, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallel replicas(net, communicator, {.parameter_dtype = dtype});
      replicas.check_replicas();
      if (communicator.rank() == 1) {
        auto* bytes =
            static_cast<unsigned char*>(replicas.states().at(2).master.mutable_data_ptr());
        bytes[5] ^= 0x10;
      }
      replicas.check_replicas();
    });

    for (const auto& error : errors) {
      EXPECT_THROW(std::rethrow_exception(error), core::NumericsError);
      EXPECT_THAT(message_of(error), AllOf(HasSubstr("'norm.weight'"), HasSubstr("on rank 1"),
                                           HasSubstr("on ranks 0, 2")));
    }
  }
}

TEST(FailureTest, backward_oneRankThrows_peersStopWithItsMessage) {
  const auto errors = run_ranks_collecting(3, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.bucket_mb = kSmallBuckets});
    replicas.begin_micro_step(0);
    torch::Tensor loss = toy_loss(net, make_toy_batch(0, 4));
    if (communicator.rank() == 1) {
      loss.register_hook(
          [](const torch::Tensor&) { throw core::NumericsError("the loss is not a number"); });
    }
    try {
      loss.backward();
    } catch (const std::exception& error) {
      communicator.announce_failure(error.what());
      throw;
    }
    replicas.finish_backward();
  });

  EXPECT_THAT(message_of(errors[1]), HasSubstr("the loss is not a number"));
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_THROW(std::rethrow_exception(errors[rank]), core::PeerError);
    EXPECT_THAT(message_of(errors[rank]), HasSubstr("the loss is not a number"));
  }
}

TEST(FailureTest, destroy_insideAStep_tellsThePeers) {
  const auto errors = run_ranks_collecting(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.bucket_mb = kSmallBuckets});
    replicas.begin_micro_step(0);
    toy_loss(net, make_toy_batch(0, 4)).backward();
    if (communicator.rank() == 0) throw core::DataError("a shard is torn");
    replicas.finish_backward();
    replicas.update(0);
    communicator.barrier();
  });

  EXPECT_THAT(message_of(errors[0]), HasSubstr("torn"));
  EXPECT_THAT(message_of(errors[1]), HasSubstr("Rank 0 left step 1"));
}

TEST(FailureTest, dropGradients_beginsTheStepAnew) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.grad_accumulation = 2});
    const auto micro_step = [&](int number, std::int64_t sample) {
      replicas.begin_micro_step(number);
      toy_loss(net, make_toy_batch(sample, 4)).backward();
    };
    const auto norm_of_step = [&] {
      micro_step(0, communicator.rank());
      micro_step(1, 8);
      replicas.finish_backward();
      return replicas.grad_norm();
    };
    const double undisturbed = norm_of_step();
    replicas.drop_gradients();  // instead of update()

    micro_step(0, 100);
    replicas.drop_gradients();
    EXPECT_FALSE(net.first->weight.grad().defined());
    replicas.require_idle("a call between steps");
    EXPECT_EQ(norm_of_step(), undisturbed);
    EXPECT_EQ(replicas.steps_taken(), 0);
  });
}

TEST(FailureTest, calls_outOfOrder_throw) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.grad_accumulation = 2});
    const auto backward = [&] { toy_loss(net, make_toy_batch(0, 4)).backward(); };

    EXPECT_THROW(backward(), core::Error);
    EXPECT_THROW(replicas.begin_micro_step(1), core::Error);
    EXPECT_THROW(replicas.finish_backward(), core::Error);
    EXPECT_THROW(replicas.update(0), core::Error);
    replicas.begin_micro_step(0);
    backward();
    EXPECT_THROW(replicas.finish_backward(), core::Error);
    EXPECT_THROW(backward(), core::Error);  // autograd has added to some gradients before
    replicas.abandon_step(0);
    replicas.begin_micro_step(0);
    backward();
    EXPECT_THROW(replicas.begin_micro_step(0), core::Error);  // it would drop that gradient
    replicas.begin_micro_step(1);
    backward();
    EXPECT_THROW(replicas.begin_micro_step(0), core::Error);
    EXPECT_THROW(replicas.drop_gradients(), core::Error);
    replicas.finish_backward();
    EXPECT_GT(replicas.grad_norm(), 0);
    EXPECT_EQ(replicas.steps_taken(), 0);
    EXPECT_THROW(replicas.begin_micro_step(2), core::Error);
    replicas.update(0);
    EXPECT_EQ(replicas.steps_taken(), 1);
  });
}

}  // namespace
}  // namespace sidestream::test
