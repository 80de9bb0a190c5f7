// A module that was moved, or not, while its communicator works elsewhere: an address that a
// library of the other side must not be given.
#include "parallel/tensor_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include <torch/nn/modules/linear.h>

#include "core/base/error.hpp"
#include "parallel/data_parallel.hpp"
#include "parallel/module_buffers.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using ::testing::AllOf;
using ::testing::HasSubstr;

torch::Tensor zeros_elsewhere() { return torch::zeros({3}, torch::device(torch::kMeta)); }

TEST(TensorPlaceTest, a_constant_that_is_elsewhere_is_named_by_all_ranks) {
  const auto expect_named = [](const std::function<void(ToyNet&)>& change, const char* name) {
    const auto errors = run_ranks_collecting(2, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      if (communicator.rank() == 1) change(net);
      const DataParallel replicas(net, communicator, {});
    });
    for (const auto& error : errors)
      EXPECT_THAT(test::message_of(error),
                  AllOf(HasSubstr("Rank 1: '" + std::string(name) +
                                  "' is on meta, but the communicator works on the host"),
                        HasSubstr("Leave the module on the CPU"), HasSubstr("DeviceWish::kCuda")));
  };

  expect_named([](ToyNet& net) { net.register_buffer("running", zeros_elsewhere()); }, "running");
  expect_named([](ToyNet& net) { net.register_parameter("frozen", zeros_elsewhere(), false); },
               "frozen");
}

TEST(TensorPlaceTest, a_module_that_was_not_moved_to_the_gpu_is_told_to) {
  const auto errors = run_ranks_collecting(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    const DataParallel replicas(net, communicator, {}, {.place = torch::Device(torch::kCUDA, 0)});
  });

  EXPECT_THROW(std::rethrow_exception(errors[0]), core::AgreedError);
  EXPECT_THAT(test::message_of(errors[0]),
              AllOf(HasSubstr("'first.weight' is on the host"), HasSubstr("works on cuda:0"),
                    HasSubstr("Move the whole module there")));
}

TEST(TensorPlaceTest, of_host_ranks_is_the_host) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    EXPECT_TRUE(parallel::place_of(communicator).is_cpu());
  });
}

TEST(TensorPlaceTest, a_buffer_that_is_elsewhere_is_not_broadcast) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    torch::nn::Linear net(2, 2);
    net->register_buffer("elsewhere", zeros_elsewhere());
    EXPECT_THROW(parallel::broadcast_buffers(*net, communicator), core::ConfigError);
  });
}

TEST(TensorPlaceTest, the_device_of_a_module_is_that_of_what_it_trains) {
  torch::nn::Module module;
  module.register_parameter("frozen", zeros_elsewhere(), false);
  module.register_parameter("trained", torch::zeros({3}));
  EXPECT_TRUE(parallel::device_of(module).is_cpu());
}

}  // namespace
}  // namespace sidestream::test
