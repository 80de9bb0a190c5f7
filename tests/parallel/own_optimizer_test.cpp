// An optimizer of the program's own in place of update(): refused where it cannot learn the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "core/base/error.hpp"
#include "parallel/data_parallel.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::StateSharing;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Where ranks share weights, or have the sums of their slices only.
class WatchedWeightsTest : public ::testing::TestWithParam<StateSharing> {
 protected:
  // Two ranks whose first step has gone as far as its sums.
  static void after_sums(
      const std::function<void(ThreadCommunicator&, ToyNet&, DataParallel&)>& go_on) {
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      communicator.share_memory();
      ToyNet net(0);
      DataParallel replicas(net, communicator, {.state_sharing = GetParam()});
      EXPECT_EQ(replicas.shares_weights(), GetParam() == StateSharing::kOn);
      sum_up(net, replicas);
      go_on(communicator, net, replicas);
    });
  }
  static void sum_up(ToyNet& net, DataParallel& replicas) {
    replicas.begin_micro_step(0);
    toy_loss(net, make_toy_batch(0, 4)).backward();
    replicas.finish_backward();
  }
  // The ranks one after another, for the weights may be one copy.
  static void in_turns(ThreadCommunicator& communicator, const std::function<void()>& work) {
    communicator.barrier();
    if (communicator.rank() == 0) work();
    communicator.barrier();
    if (communicator.rank() == 1) work();
    communicator.barrier();
  }

  // Counts: in the versions of the parameters.
  template <bool Counts, typename Optimizer, typename Options>
  static void expect_told(const Options& options) {
    after_sums([&](ThreadCommunicator& communicator, ToyNet& net, DataParallel& replicas) {
      Optimizer optimizer(net.parameters(), options);
      in_turns(communicator, [&] { optimizer.step(); });
      const auto words = AllOf(HasSubstr("'first.weight' was written to after finish_backward()"),
                               HasSubstr("StateSharing::kOff"));
      EXPECT_THAT(message_of<core::Error>([&] { replicas.begin_micro_step(0); }), words);
      // Where weights are one copy, others may have dropped the step already, and write to them.
      if (Counts || !replicas.shares_weights())
        EXPECT_THAT(message_of<core::Error>([&] { replicas.drop_gradients(); }), words);
      else
        EXPECT_EQ(message_of<core::Error>([&] { replicas.drop_gradients(); }), "");
    });
  }
};

TEST_P(WatchedWeightsTest, steps_that_count_as_changes_are_an_error_of_the_next_step) {
  expect_told<true, torch::optim::AdamW>(torch::optim::AdamWOptions(1e-2));
}

TEST_P(WatchedWeightsTest, steps_that_are_seen_in_the_values_alone_are_one_too) {
  expect_told<false, torch::optim::SGD>(torch::optim::SGDOptions(1e-2));
}

TEST_P(WatchedWeightsTest, a_step_that_is_dropped_is_none) {
  after_sums([](ThreadCommunicator& communicator, ToyNet& net, DataParallel& replicas) {
    sum_up(net, replicas);  // in place of an update
    replicas.drop_gradients();
    in_turns(communicator, [&] {
      const torch::NoGradGuard no_grad;
      net.first->weight.fill_(7);
    });
    sum_up(net, replicas);
    replicas.update(1e-2);
    EXPECT_EQ(message_of<core::Error>([&] { replicas.begin_micro_step(0); }), "");
    replicas.abandon_step(1);
  });
}

TEST_P(WatchedWeightsTest, a_step_that_others_have_dropped_and_written_over_is_none) {
  after_sums([](ThreadCommunicator& communicator, ToyNet& net, DataParallel& replicas) {
    if (communicator.rank() == 0) {
      replicas.drop_gradients();
      const torch::NoGradGuard no_grad;
      net.first->weight.fill_(7);
    }
    communicator.barrier();
    if (communicator.rank() == 1)
      EXPECT_EQ(message_of<core::Error>([&] { replicas.drop_gradients(); }), "");
  });
}

TEST_P(WatchedWeightsTest, a_state_that_is_restored_in_place_of_an_update_is_none) {
  after_sums([](ThreadCommunicator& communicator, ToyNet& net, DataParallel& replicas) {
    const auto ones = [](const torch::Tensor& like) {
      return torch::ones(like.sizes(), torch::kFloat32);
    };
    in_turns(communicator, [&] {
      if (replicas.shards_state()) {
        replicas.load_states([&](const std::string& kind, const std::string& parameter) {
          return kind.empty() ? ones(net.named_parameters()[parameter]) : torch::Tensor();
        });
        return;
      }
      for (parallel::ParameterState& state : replicas.states())
        state.master.copy_(ones(state.master));
      replicas.refresh_parameters();
    });
    EXPECT_TRUE(net.first->weight.eq(1).all().item<bool>());
    EXPECT_EQ(message_of<core::Error>([&] { replicas.begin_micro_step(0); }), "");
    replicas.abandon_step(0);
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, WatchedWeightsTest,
                         ::testing::Values(StateSharing::kOn, StateSharing::kSharded),
                         [](const auto& info) {
                           return info.param == StateSharing::kOn ? "shared" : "sliced";
                         });

TEST(OwnOptimizerTest, an_optimizer_of_ones_own_may_step_where_each_rank_has_all_weights) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(1e-2));
    for (int step = 0; step < 2; ++step) {
      replicas.begin_micro_step(0);
      toy_loss(net, make_toy_batch(4 * communicator.rank(), 4)).backward();
      replicas.finish_backward();
      optimizer.step();
    }
    EXPECT_NO_THROW(replicas.check_replicas());
  });
}

}  // namespace
}  // namespace sidestream::test
