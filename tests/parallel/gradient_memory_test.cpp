// Gradients that operators write into their bucket: what is lent, when, and that nothing is copied.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "core/base/error.hpp"
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

// Writes a gradient, offers it while its backward still runs, and hands autograd what is not taken.
struct OfferedGradient : torch::autograd::Function<OfferedGradient> {
  struct Offer {
    torch::Tensor memory;
    double value = 0;
    std::function<bool()> offer;
  };
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               Offer* offer) {
    context->saved_data["offer"] = reinterpret_cast<std::int64_t>(offer);
    return x.sum();
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& /*grads*/) {
    auto* offer = reinterpret_cast<Offer*>(context->saved_data["offer"].toInt());
    offer->memory.fill_(offer->value);
    torch::Tensor gradient = std::exchange(offer->memory, {});
    return {offer->offer() ? torch::Tensor() : gradient, torch::Tensor()};
  }
};

// In the memory that the trainer lends, or in some of its own.
OfferedGradient::Offer offer_of(DataParallel& replicas, const torch::Tensor& weight, double value) {
  const torch::Tensor lent = replicas.gradient_memory()(weight);
  return {.memory = lent.defined() ? lent : torch::empty_like(weight),
          .value = value,
          .offer = [weight, taking = replicas.gradient_taking()] { return taking(weight); }};
}

TEST(GradientMemoryTest, takenOver_leavesInsideItsBackward) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator,
                          {.bucket_mb = kSmallBuckets,
                           .unused_parameters = UnusedParameters::kAllow,
                           .optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd,
                                         .weight_decay = 0,
                                         .momentum = 0,
                                         .grad_clip = 0}});
    const auto memory = replicas.gradient_memory();
    const auto taking = replicas.gradient_taking();
    EXPECT_FALSE(taking(net.first->weight)) << "outside of a step";
    const torch::Tensor before = net.first->weight.detach().clone();
    for (int step = 1; step <= 3; ++step) {
      replicas.begin_micro_step(0);
      EXPECT_FALSE(taking(net.first->weight)) << "its memory was not lent";
      EXPECT_FALSE(taking(torch::ones({3}))) << "no parameter";
      std::size_t started = 0;
      OfferedGradient::Offer offer{
          .memory = memory(net.first->weight), .value = 1.0 + communicator.rank(), .offer = [&] {
            const std::size_t so_far = communicator.reduced_buckets().size();
            const bool taken = taking(net.first->weight);
            EXPECT_TRUE(taken);
            started = communicator.reduced_buckets().size() - so_far;
            return taken;
          }};
      OfferedGradient::apply(net.first->weight, &offer).backward();

      // The order of buckets is that of the first step.
      EXPECT_EQ(started, step == 1 ? 0U : 1U);
      EXPECT_FALSE(taking(net.first->weight)) << "a second time";
      replicas.finish_backward();
      replicas.update(1.0);
    }
    EXPECT_TRUE(net.first->weight.allclose(before - 3 * 1.5)) << "mean of 1 and 2, three times";
    replicas.check_replicas();
  });
}

TEST(GradientMemoryTest, takenOver_aSecondGradientIsStillAnError) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.unused_parameters = UnusedParameters::kAllow});
    replicas.begin_micro_step(0);
    OfferedGradient::Offer offer = offer_of(replicas, net.first->weight, 1);
    OfferedGradient::apply(net.first->weight, &offer).backward();
    EXPECT_THROW(net.first->weight.sum().backward(), core::Error);
  });
}

TEST(GradientMemoryTest, takenOver_anotherUseThatDidNotAskIsAnError) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.unused_parameters = UnusedParameters::kAllow});
    replicas.begin_micro_step(0);
    OfferedGradient::Offer offer = offer_of(replicas, net.first->weight, 1);
    const torch::Tensor loss =
        OfferedGradient::apply(net.first->weight, &offer) + net.first->weight.sum();
    EXPECT_THROW(loss.backward(), core::Error);
  });
}

TEST(GradientMemoryTest, takenOver_laterMicroStepsAddToIt) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator,
                          {.unused_parameters = UnusedParameters::kAllow, .grad_accumulation = 2});
    replicas.begin_micro_step(0);
    OfferedGradient::Offer offer = offer_of(replicas, net.first->weight, 1);
    OfferedGradient::apply(net.first->weight, &offer).backward();
    replicas.begin_micro_step(1);
    (2 * net.first->weight.sum()).backward();
    replicas.finish_backward();
    EXPECT_TRUE(net.first->weight.grad().allclose(torch::full_like(net.first->weight, 3)));
    replicas.update(1e-2);
  });
}

// Of a weight that is used twice autograd adds both gradients.
TEST(GradientMemoryTest, takenOver_notWhereItWasAskedForTwice) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {.unused_parameters = UnusedParameters::kAllow});
    replicas.begin_micro_step(0);
    OfferedGradient::Offer one = offer_of(replicas, net.first->weight, 1),
                           two = offer_of(replicas, net.first->weight, 2);
    (OfferedGradient::apply(net.first->weight, &one) +
     OfferedGradient::apply(net.first->weight, &two))
        .backward();
    replicas.finish_backward();
    EXPECT_TRUE(net.first->weight.grad().allclose(torch::full_like(net.first->weight, 3)));
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
    std::function<bool(const torch::Tensor&)> taking;
    {
      DataParallel replicas(net, communicator, {});
      memory = replicas.gradient_memory();
      taking = replicas.gradient_taking();
    }
    EXPECT_FALSE(memory(net.first->weight).defined());
    EXPECT_FALSE(taking(net.first->weight));
  });
}

}  // namespace
}  // namespace sidestream::test
