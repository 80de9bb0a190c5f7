#include "parallel/module_buffers.hpp"

#include <gtest/gtest.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "parallel/data_parallel.hpp"
#include "tests/parallel/thread_communicator.hpp"

namespace sidestream::test {
namespace {

struct NormedNet : torch::nn::Module {
  NormedNet() {
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    last = register_module("last", torch::nn::Linear(4, 1));
  }
  torch::Tensor forward(const torch::Tensor& input) { return last(norm(input)); }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear last{nullptr};
};

TEST(ModuleBuffersTest, all_ranks_have_the_first_ones_after_forwards_on_their_own_samples) {
  run_ranks(3, [](ThreadCommunicator& communicator) {
    NormedNet net;
    parallel::DataParallel replicas(net, communicator, {});
    const double sample = 1 + communicator.rank();
    replicas.begin_micro_step(0);
    net.forward(torch::full({8, 4}, sample)).sum().backward();
    replicas.finish_backward();
    replicas.update(0.1);
    EXPECT_NEAR(net.norm->running_mean[0].item<double>(), 0.1 * sample, 1e-6);

    parallel::broadcast_buffers(net, communicator);
    EXPECT_NEAR(net.norm->running_mean[0].item<double>(), 0.1, 1e-6);
    EXPECT_EQ(net.norm->num_batches_tracked.item<std::int64_t>(), 1);
  });
}

TEST(ModuleBuffersTest, a_module_without_buffers_has_none_to_send) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    const torch::nn::Linear net(2, 2);
    parallel::broadcast_buffers(*net, communicator);
  });
}

}  // namespace
}  // namespace sidestream::test
