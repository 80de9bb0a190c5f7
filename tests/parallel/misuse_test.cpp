// What a program does to a module that DataParallel holds, or differently on one rank: an error
// that says what, and no silent wrong weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>

#include <torch/nn/modules/embedding.h>

#include "core/base/error.hpp"
#include "parallel/data_parallel.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::DataParallelConfig;
using ::testing::AllOf;
using ::testing::HasSubstr;

class MisuseTest : public ::testing::TestWithParam<std::function<void(ToyNet&)>> {};

TEST_P(MisuseTest, parameters_that_are_other_tensors_now_are_an_error_of_the_next_step) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    const torch::NoGradGuard no_grad;
    GetParam()(net);
    EXPECT_THAT(message_of<core::Error>([&] { replicas.begin_micro_step(0); }),
                HasSubstr("was given other memory or another type"));
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, MisuseTest,
                         ::testing::Values([](ToyNet& net) { net.to(torch::kFloat64); },
                                           [](ToyNet& net) {
                                             net.first->weight.set_data(
                                                 torch::zeros_like(net.first->weight));
                                           },
                                           [](ToyNet& net) {
                                             std::stringstream file;
                                             torch::serialize::OutputArchive written;
                                             net.save(written);
                                             written.save_to(file);
                                             torch::serialize::InputArchive read;
                                             read.load_from(file);
                                             net.load(read);
                                           }));

TEST(MisuseTest, a_parameter_that_is_frozen_or_unfrozen_later_is_an_error_of_the_next_step) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    net.branch->bias.requires_grad_(false);
    DataParallel replicas(net, communicator,
                          {.unused_parameters = parallel::UnusedParameters::kAllow});
    const auto begin = [&] { replicas.begin_micro_step(0); };

    net.first->weight.requires_grad_(false);
    EXPECT_THAT(message_of<core::Error>(begin),
                HasSubstr("'first.weight' was frozen since DataParallel was made"));
    net.first->weight.requires_grad_(true);
    net.branch->bias.requires_grad_(true);
    EXPECT_THAT(message_of<core::Error>(begin),
                HasSubstr("'branch.bias' requires a gradient, but was frozen when"));
    net.branch->bias.requires_grad_(false);
    EXPECT_EQ(message_of<core::Error>(begin), "");
    replicas.abandon_step(0);
  });
}

TEST(MisuseTest, a_parameter_that_is_frozen_inside_a_step_is_told_of_with_its_gradient_missing) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    replicas.begin_micro_step(0);
    net.first->weight.requires_grad_(false);
    toy_loss(net, make_toy_batch(0, 4)).backward();
    EXPECT_THAT(message_of<core::Error>([&] { replicas.finish_backward(); }),
                AllOf(HasSubstr("got no gradient"), HasSubstr("'first.weight'"),
                      HasSubstr("frozen after DataParallel was made")));
  });
}

TEST(MisuseTest, values_that_are_written_in_place_are_no_error) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    {
      const torch::NoGradGuard no_grad;
      net.first->weight.mul_(0.5);
    }
    EXPECT_EQ(message_of<core::Error>([&] { replicas.begin_micro_step(0); }), "");
  });
}

TEST(MisuseTest, a_module_belongs_to_one_at_a_time) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    {
      const DataParallel first(net, communicator, {});
      EXPECT_THAT(message_of<core::AgreedError>([&] { DataParallel(net, communicator, {}); }),
                  HasSubstr("another DataParallel holds this module"));
    }
    const DataParallel second(net, communicator, {});
  });
}

TEST(MisuseTest, ranks_with_other_rules_of_the_optimizer_are_told_which) {
  const auto differs = [](const std::function<void(parallel::OptimizerConfig&)>& change,
                          const std::string& words) {
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallelConfig config;
      if (communicator.rank() == 1) change(config.optimizer);
      EXPECT_THAT(message_of<core::AgreedError>([&] { DataParallel(net, communicator, config); }),
                  HasSubstr(words));
    });
  };
  differs([](auto& one) { one.weight_decay = 0; },
          "expected optimizer weight_decay 0.1, found optimizer weight_decay 0");
  differs([](auto& one) { one.grad_clip = 0.5; }, "found optimizer grad_clip 0.5");
  differs([](auto& one) { one.beta2 = 0.5; }, "found optimizer betas 0.9 0.5");
  differs([](auto& one) { one.algorithm = parallel::OptimizerAlgorithm::kSgd; },
          "found optimizer algorithm sgd");
  differs([](auto& one) { one.kernel = parallel::OptimizerKernel::kUnfused; },
          "found optimizer kernel unfused");
}

TEST(MisuseTest, ranks_that_give_other_orders_of_buckets_are_told) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    auto order = replicas.bucket_order();
    if (communicator.rank() == 1) std::swap(order[0], order[1]);
    EXPECT_THAT(message_of<core::AgreedError>([&] { replicas.set_bucket_order(order); }),
                HasSubstr("Rank 1 gave another bucket order"));
    order = {"a"};
    if (communicator.rank() == 1) order.push_back("");
    EXPECT_THAT(message_of<core::AgreedError>([&] { replicas.set_bucket_order(order); }),
                HasSubstr("expected nothing more, found ''"));
  });
}

TEST(MisuseTest, a_second_backward_in_a_micro_step_is_told_what_to_do_instead) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    replicas.begin_micro_step(0);
    toy_loss(net, make_toy_batch(0, 4)).backward();
    EXPECT_THAT(
        message_of<std::exception>([&] { toy_loss(net, make_toy_batch(4, 4)).backward(); }),
        AllOf(HasSubstr("got a second gradient in micro-step 0"), HasSubstr("Add the losses"),
              HasSubstr("raise grad_accumulation and multiply each loss by it")));
    replicas.abandon_step(0);
  });
}

// What the message says: the two ways have the gradients of one backward of the sum.
TEST(MisuseTest, added_losses_and_multiplied_micro_steps_have_one_gradient) {
  const auto norm_with = [](int micro_steps) {
    double norm = 0;
    run_ranks(1, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallel replicas(net, communicator, {.grad_accumulation = micro_steps});
      for (int micro_step = 0; micro_step < micro_steps; ++micro_step) {
        replicas.begin_micro_step(micro_step);
        torch::Tensor loss = toy_loss(net, make_toy_batch(micro_step * 4, 4)) * micro_steps;
        if (micro_steps == 1) loss = loss + toy_loss(net, make_toy_batch(4, 4));
        loss.backward();
      }
      replicas.finish_backward();
      norm = replicas.grad_norm();
    });
    return norm;
  };
  EXPECT_NEAR(norm_with(1), norm_with(2), 1e-5 * norm_with(1));
}

TEST(MisuseTest, a_sparse_gradient_is_named) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(4, 2).sparse(true));
    DataParallel replicas(*table, communicator, {});
    replicas.begin_micro_step(0);
    const torch::Tensor loss = table(torch::tensor({1, 2})).sum();
    EXPECT_THAT(message_of<std::exception>([&] { loss.backward(); }),
                HasSubstr("'weight' has a sparse gradient"));
    replicas.abandon_step(0);
  });
}

// A step of two micro-steps; `between` comes before the second one's forward.
void step_of_two(ToyNet& net, DataParallel& replicas, const std::function<void()>& between,
                 bool create_graph = false) {
  for (int micro_step = 0; micro_step < 2; ++micro_step) {
    replicas.begin_micro_step(micro_step);
    if (micro_step == 1) between();
    toy_loss(net, make_toy_batch(micro_step * 4, 4)).backward({}, create_graph, create_graph);
  }
  replicas.finish_backward();
}

class AccumulatedTest : public ::testing::TestWithParam<core::DType> {
 protected:
  DataParallelConfig config() const {
    DataParallelConfig config;
    config.grad_accumulation = 2;
    config.reduce_dtype = GetParam();
    return config;
  }

  void expect_error(const std::function<void(ToyNet&, DataParallel&)>& step,
                    const std::string& words) const {
    run_ranks(1, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallel replicas(net, communicator, config());
      EXPECT_THAT(message_of<std::exception>([&] { step(net, replicas); }), HasSubstr(words));
      replicas.abandon_step(0);
    });
  }
};

TEST_P(AccumulatedTest, gradients_that_are_taken_away_between_micro_steps_are_named) {
  expect_error([](ToyNet& net,
                  DataParallel& replicas) { step_of_two(net, replicas, [&] { net.zero_grad(); }); },
               "do not call zero_grad() between micro-steps");
}

TEST_P(AccumulatedTest, gradients_that_are_written_into_between_micro_steps_are_named) {
  expect_error(
      [](ToyNet& net, DataParallel& replicas) {
        step_of_two(net, replicas, [&] { net.zero_grad(/*set_to_none=*/false); });
      },
      "nor write into gradients");
}

TEST_P(AccumulatedTest, sums_that_backward_puts_elsewhere_are_named) {
  expect_error(
      [](ToyNet& net, DataParallel& replicas) {
        step_of_two(
            net, replicas, [] {}, true);
      },
      "nor backward() with create_graph");
}

TEST_P(AccumulatedTest, gradients_that_are_taken_away_before_a_step_are_no_error) {
  run_ranks(1, [&](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, config());
    step_of_two(net, replicas, [] {});
    const double norm = replicas.grad_norm();
    net.zero_grad();
    step_of_two(net, replicas, [] {});
    EXPECT_EQ(replicas.grad_norm(), norm);
  });
}

// An operator that has no gradient for what it uses, which autograd's hooks are told of all the
// same.
struct WithoutGradient : torch::autograd::Function<WithoutGradient> {
  static torch::Tensor forward(torch::autograd::AutogradContext* /*context*/,
                               const torch::Tensor& input) {
    return input.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 const torch::autograd::variable_list& /*of*/) {
    return {torch::Tensor()};
  }
};

TEST_P(AccumulatedTest, a_micro_step_that_brings_no_gradient_counts_as_zero) {
  const auto norm_with = [&](int micro_step_without, const auto& loss_of) {
    double norm = 0;
    run_ranks(1, [&](ThreadCommunicator& communicator) {
      ToyNet net(0);
      DataParallel replicas(net, communicator, config());
      for (int micro_step = 0; micro_step < 2; ++micro_step) {
        replicas.begin_micro_step(micro_step);
        torch::Tensor loss = toy_loss(net, make_toy_batch(0, 4));
        if (micro_step == micro_step_without) {
          loss = torch::zeros({});
          for (const torch::Tensor& parameter : net.parameters()) loss = loss + loss_of(parameter);
        }
        loss.backward();
      }
      replicas.finish_backward();
      norm = replicas.grad_norm();
    });
    return norm;
  };
  const auto none = [](const torch::Tensor& weight) {
    return WithoutGradient::apply(weight).sum();
  };
  const auto zero = [](const torch::Tensor& weight) { return (weight * 0).sum(); };
  for (const int micro_step : {0, 1}) {
    const double norm = norm_with(micro_step, none);
    EXPECT_EQ(norm, norm_with(micro_step, zero)) << "micro-step " << micro_step;
    EXPECT_GT(norm, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(ReduceDtypes, AccumulatedTest,
                         ::testing::Values(core::DType::kFloat32, core::DType::kBFloat16));

TEST(MisuseTest, a_buffer_whose_elements_share_memory_has_the_first_ranks_values) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    net.register_buffer("same", torch::full({1}, 3.0 + communicator.rank()).expand({6}));
    const DataParallel replicas(net, communicator, {});
    EXPECT_TRUE(net.named_buffers()["same"].eq(3).all().item<bool>());
  });
}

TEST(MisuseTest, a_buffer_that_is_a_part_of_another_stays_one) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    const torch::Tensor whole = torch::full({4, 6}, 3.0 + communicator.rank());
    net.register_buffer("whole", whole);
    net.register_buffer("part", whole.narrow(1, 0, 2));
    const DataParallel replicas(net, communicator, {});
    whole.fill_(7);
    EXPECT_TRUE(net.named_buffers()["part"].eq(7).all().item<bool>());
  });
}

TEST(MisuseTest, slices_of_state_that_is_whole_are_refused) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    const auto nothing = [](const std::string&, const std::string&) { return torch::Tensor(); };
    EXPECT_THAT(message_of<core::Error>([&] { replicas.load_states(nothing); }),
                HasSubstr("load_states() is for ranks that keep slices"));
    EXPECT_THAT(message_of<core::Error>([&] { replicas.gather_states(nothing); }),
                HasSubstr("gather_states() is for ranks that keep slices"));
  });
}

TEST(MisuseTest, a_learning_rate_that_is_none_is_refused) {
  run_ranks(1, [](ThreadCommunicator& communicator) {
    ToyNet net(0);
    DataParallel replicas(net, communicator, {});
    for (const double wrong : {-1.0, std::nan(""), HUGE_VAL})
      EXPECT_THAT(message_of<core::Error>([&] { replicas.prepare_update(wrong); }),
                  HasSubstr("learning rate"));
  });
}

}  // namespace
}  // namespace sidestream::test
