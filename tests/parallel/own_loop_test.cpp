// What the headers tell whoever writes a loop of their own.
#include <gtest/gtest.h>

#include <torch/nn/modules/conv.h>

#include "parallel/data_parallel.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::DataParallelConfig;

// A step in which rank 1 has no batch left; it may bring zeros of its own instead of no backward.
enum class RestOfRanks { kNoBackward, kZeros };
double norm_without_a_batch(int ranks, RestOfRanks rest) {
  double norm = 0;
  run_ranks(ranks, [&](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(
        net, communicator,
        {.unused_parameters = parallel::UnusedParameters::kAllow, .grad_accumulation = 2});
    for (int micro_step = 0; micro_step < 2; ++micro_step) {
      replicas.begin_micro_step(micro_step);
      const torch::Tensor loss = toy_loss(net, make_toy_batch(micro_step * 4, 4));
      if (communicator.rank() == 0) loss.backward();
      if (communicator.rank() == 1 && rest == RestOfRanks::kZeros) (loss * 0).backward();
    }
    replicas.finish_backward();
    const double of_rank = replicas.update(1e-2).grad_norm;
    replicas.check_replicas();
    if (communicator.rank() == 0) norm = of_rank;
  });
  return norm;
}

TEST(OwnLoopTest, a_rank_without_a_batch_brings_zeros_to_the_average_of_all) {
  const double norm = norm_without_a_batch(2, RestOfRanks::kNoBackward);
  EXPECT_EQ(norm, norm_without_a_batch(2, RestOfRanks::kZeros));
  EXPECT_NEAR(2 * norm, norm_without_a_batch(1, RestOfRanks::kZeros), 1e-5 * norm);
}

TEST(OwnLoopTest, weights_in_16_bits_come_from_the_master_weights_again) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator,
                          DataParallelConfig{.parameter_dtype = core::DType::kBFloat16,
                                             .reduce_dtype = core::DType::kFloat32});
    {
      const torch::NoGradGuard no_grad;
      net.second->bias.fill_(7);
    }
    replicas.begin_micro_step(0);
    toy_loss(net, make_toy_batch(0, 4)).backward();
    EXPECT_FALSE(net.first->weight.grad().defined()) << "the reduce dtype is another";
    replicas.finish_backward();
    replicas.update(1e-2);
    EXPECT_LT(net.second->bias.abs().max().item<double>(), 1);
  });
}

TEST(OwnLoopTest, a_parameter_in_channels_last_order_becomes_contiguous) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    torch::nn::Conv2d net(torch::nn::Conv2dOptions(3, 4, 3));
    const torch::Tensor before = net->weight.detach().clone();
    net->weight.set_data(net->weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
    const DataParallel replicas(*net, communicator, {});
    EXPECT_TRUE(net->weight.is_contiguous());
    EXPECT_TRUE(net->weight.equal(before));
  });
}

TEST(OwnLoopTest, sgd_decays_matrices_unless_told_otherwise) {
  for (const double decay : {DataParallelConfig().optimizer.weight_decay, 0.0}) {
    run_ranks(1, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallelConfig config;
      config.optimizer.algorithm = parallel::OptimizerAlgorithm::kSgd;
      config.optimizer.weight_decay = decay;
      DataParallel replicas(net, communicator, config);
      const torch::Tensor weight = net.first->weight.detach().clone();
      const torch::Tensor bias = net.first->bias.detach().clone();
      replicas.begin_micro_step(0);
      (toy_loss(net, make_toy_batch(0, 4)) * 0).backward();
      replicas.finish_backward();
      replicas.update(1.0);
      EXPECT_TRUE(net.first->weight.allclose(weight * (1 - decay)));
      EXPECT_TRUE(net.first->bias.equal(bias));
    });
  }
}

}  // namespace
}  // namespace sidestream::test
