// Gradients that operators write into their bucket: what is lent, when, and that nothing is copied.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "parallel/data_parallel.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::DataParallelConfig;
using parallel::UnusedParameters;

// Hands autograd a gradient in memory that was asked for.
struct WrittenGradient : torch::autograd::Function<WrittenGradient> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const std::function<torch::Tensor()>& gradient) {
    context->saved_data["gradient"] = gradient();
    return x.sum();
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& /*grads*/) {
    torch::Tensor gradient = context->saved_data["gradient"].toTensor();
    context->saved_data.clear();
    return {gradient, torch::Tensor()};
  }
};

TEST(GradientMemoryTest, isTheBucket) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator,
                          {.unused_parameters = UnusedParameters::kAllow,
                           .optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd,
                                         .weight_decay = 0,
                                         .momentum = 0,
                                         .grad_clip = 0}});
    const auto memory = replicas.gradient_memory();
    const torch::Tensor before = net.first->weight.detach().clone();
    for (int step = 0; step < 3; ++step) {
      replicas.begin_micro_step(0);
      torch::Tensor place = memory(net.first->weight);
      const void* address = place.data_ptr();
      place.fill_(1 + communicator.rank());
      WrittenGradient::apply(net.first->weight, [&] {
        return std::exchange(place, {});
      }).backward();

      EXPECT_EQ(net.first->weight.grad().data_ptr(), address) << "it was copied";
      replicas.finish_backward();
      replicas.update(1.0);
    }
    EXPECT_TRUE(net.first->weight.allclose(before - 3 * 1.5)) << "mean of 1 and 2, three times";
    replicas.check_replicas();
  });
}

TEST(GradientMemoryTest, isLentOnceAStep) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.grad_accumulation = 2});
    const auto memory = replicas.gradient_memory();
    EXPECT_FALSE(memory(net.first->weight).defined()) << "before a step";

    replicas.begin_micro_step(0);
    EXPECT_FALSE(memory(torch::ones({3})).defined()) << "no parameter";
    EXPECT_EQ(memory(net.first->weight).sizes(), net.first->weight.sizes());
    EXPECT_FALSE(memory(net.first->weight).defined()) << "a second time";
    toy_loss(net, make_toy_batch(0, 4)).backward();
    EXPECT_FALSE(memory(net.second->weight).defined()) << "there is a gradient";
    replicas.begin_micro_step(1);
    EXPECT_FALSE(memory(net.first->weight).defined()) << "to be added to";
    toy_loss(net, make_toy_batch(0, 4)).backward();
    replicas.finish_backward();
    EXPECT_FALSE(memory(net.first->weight).defined()) << "after backward";
    replicas.update(1e-2);

    replicas.begin_micro_step(0);
    EXPECT_TRUE(memory(net.first->weight).defined()) << "the next step";
  });
}

TEST(GradientMemoryTest, borrowedForNothing_changesNoNumber) {
  const auto weights_after = [](bool borrows) {
    std::vector<float> weights;
    run_ranks(1, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallel replicas(net, communicator, {});
      replicas.begin_micro_step(0);
      if (borrows) replicas.gradient_memory()(net.first->weight).fill_(1e9);
      toy_loss(net, make_toy_batch(0, 4)).backward();
      replicas.finish_backward();
      replicas.update(1e-2);
      weights = weights_of(replicas);
    });
    return weights;
  };

  EXPECT_EQ(weights_after(true), weights_after(false));
}

TEST(GradientMemoryTest, thatCannotBeLent_isUndefined) {
  for (const DataParallelConfig& config :
       {DataParallelConfig{.gradient_as_bucket_view = false},
        DataParallelConfig{.parameter_dtype = core::DType::kBFloat16,
        .reduce_dtype = core::DType::kFloat32}}) {
    run_ranks(1, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallel replicas(net, communicator, config);
      replicas.begin_micro_step(0);
      EXPECT_FALSE(replicas.gradient_memory()(net.first->weight).defined());
      const auto dtype = net.first->weight.scalar_type();
      ToyBatch batch = make_toy_batch(0, 4);
      batch.inputs_bf = batch.inputs_bf.to(dtype);
      toy_loss(net, batch).backward();
      replicas.finish_backward();
    });
  }
}

TEST(GradientMemoryTest, outlivesItsLender) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    std::function<torch::Tensor(const torch::Tensor&)> memory;
    {
      DataParallel replicas(net, communicator, {});
      memory = replicas.gradient_memory();
    }
    EXPECT_FALSE(memory(net.first->weight).defined());
  });
}

}  // namespace
}  // namespace sidestream::test
