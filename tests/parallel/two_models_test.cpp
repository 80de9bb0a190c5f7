// Two modules that one communicator trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "parallel/data_parallel.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Each rank's backward reaches the other one of two twins: what is in flight has the same sizes.
TEST(TwoModelsTest, gradients_of_two_modules_are_not_added_to_each_other) {
  const auto errors = run_ranks_collecting(2, [](ThreadCommunicator& communicator) {
    ToyNet first(0), second(0);
    const parallel::DataParallelConfig config{.unused_parameters =
                                                  parallel::UnusedParameters::kAllow};
    DataParallel of_first(first, communicator, config), of_second(second, communicator, config);
    of_first.begin_micro_step(0);
    of_second.begin_micro_step(0);
    toy_loss(communicator.rank() == 0 ? first : second, make_toy_batch(0, 4)).backward();
    of_first.finish_backward();
    of_second.finish_backward();
  });
  for (const auto& error : errors)
    EXPECT_THAT(test::message_of(error), AllOf(HasSubstr("different operations"),
                                               HasSubstr("of model 1"), HasSubstr("of model 0")));
}

void train_on(std::int64_t first_sample, ToyNet& net, DataParallel& replicas, int rank) {
  replicas.begin_micro_step(0);
  toy_loss(net, make_toy_batch(first_sample + rank * 4, 4)).backward();
  replicas.finish_backward();
  replicas.update(1e-2);
}

std::vector<float> trained_alone_on(std::int64_t first_sample) {
  std::vector<float> weights;
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    for (int step = 0; step < 3; ++step) train_on(first_sample, net, replicas, communicator.rank());
    if (communicator.rank() == 0) weights = weights_of(replicas);
  });
  return weights;
}

// Twins, with a batch of its own each.
TEST(TwoModelsTest, two_modules_of_one_communicator_are_trained_one_after_the_other) {
  const std::vector<float> first_alone = trained_alone_on(0), second_alone = trained_alone_on(50);
  ASSERT_NE(first_alone, second_alone);
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    ToyNet first(0), second(0);
    DataParallel of_first(first, communicator, {}), of_second(second, communicator, {});
    for (int step = 0; step < 3; ++step) {
      train_on(0, first, of_first, communicator.rank());
      train_on(50, second, of_second, communicator.rank());
    }
    EXPECT_EQ(weights_of(of_first), first_alone);
    EXPECT_EQ(weights_of(of_second), second_alone);
  });
}

}  // namespace
}  // namespace sidestream::test
