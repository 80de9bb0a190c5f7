// What is computed again in backward: the same bits, each gradient once, the same random numbers.
#include "model/recompute.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <torch/csrc/autograd/function_hook.h>

#include "core/base/error.hpp"
#include "model/language_model.hpp"

namespace sidestream::model {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

constexpr Recompute kLevels[] = {Recompute::kActivations, Recompute::kMlp, Recompute::kAttention,
                                 Recompute::kBlocks};

struct Variant {
  FusedOps fused;
  at::ScalarType dtype;
  double dropout;
};

const Variant kVariants[] = {
    {FusedOps::kOn, at::kFloat, 0},     {FusedOps::kOn, at::kFloat, 0.2},
    {FusedOps::kOn, at::kBFloat16, 0},  {FusedOps::kOn, at::kBFloat16, 0.2},
    {FusedOps::kOff, at::kFloat, 0},    {FusedOps::kOff, at::kFloat, 0.2},
    {FusedOps::kOff, at::kBFloat16, 0}, {FusedOps::kOff, at::kBFloat16, 0.2},
    {FusedOps::kOff, at::kDouble, 0.2}};

std::string text_of(const Variant& variant, Recompute level) {
  return std::string(variant.fused == FusedOps::kOn ? "fused " : "plain ") +
         c10::toString(variant.dtype) + " dropout " + std::to_string(variant.dropout) + " level " +
         std::to_string(static_cast<int>(level));
}

std::shared_ptr<LanguageModel> model_of(const Variant& variant, Recompute level) {
  ModelConfig config = preset("gpt2-micro");
  config.fused_ops = variant.fused;
  config.dropout = variant.dropout;
  config.recompute = level;
  auto model = make_language_model(config);
  model->initialise(1);
  model->to(variant.dtype);
  return model;
}

Tensor tokens(std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randint(512, {3, 33}, torch::kLong);
}

// Two micro-steps: gradients of the second are added to those of the first.
Tensors losses_of(LanguageModel& model) {
  const Tensor x = tokens(1), y = tokens(2);
  Tensors losses;
  for (const std::uint64_t seed : {11, 12}) {
    torch::manual_seed(seed);
    losses.push_back(model.loss(x, y));
    losses.back().backward();
  }
  // Whoever draws next gets the same numbers as well.
  losses.push_back(torch::rand({4}));
  return losses;
}

TEST(RecomputeTest, every_level_gives_the_same_bits) {
  for (const Variant& variant : kVariants) {
    const auto expected = model_of(variant, Recompute::kNone);
    const Tensors expected_losses = losses_of(*expected);
    for (const Recompute level : kLevels) {
      SCOPED_TRACE(text_of(variant, level));
      const auto model = model_of(variant, level);

      const Tensors losses = losses_of(*model);

      for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_TRUE(torch::equal(losses[i], expected_losses[i])) << "loss " << i;
      for (const auto& item : model->named_parameters()) {
        ASSERT_TRUE(item.value().grad().defined()) << item.key();
        EXPECT_TRUE(
            torch::equal(item.value().grad(), expected->named_parameters()[item.key()].grad()))
            << item.key();
      }
    }
  }
}

TEST(RecomputeTest, dropout_is_drawn_at_all) {
  const Variant with{FusedOps::kOn, at::kFloat, 0.2}, without{FusedOps::kOn, at::kFloat, 0};

  EXPECT_FALSE(torch::equal(losses_of(*model_of(with, Recompute::kBlocks))[0],
                            losses_of(*model_of(without, Recompute::kBlocks))[0]));
}

class CountingHook : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit CountingHook(int& count) : count_(count) {}
  void operator()(const Tensor& parameter) override {
    EXPECT_TRUE(parameter.grad().defined());
    ++count_;
  }

 private:
  int& count_;
};

TEST(RecomputeTest, hooks_of_parameters_are_called_once_with_the_whole_gradient) {
  for (const Variant& variant : {kVariants[0], kVariants[4]}) {
    for (const Recompute level : kLevels) {
      SCOPED_TRACE(text_of(variant, level));
      const auto model = model_of(variant, level);
      std::map<std::string, int> calls;
      for (const auto& item : model->named_parameters()) {
        torch::autograd::impl::set_post_acc_grad_hooks(
            item.value(), std::make_unique<CountingHook>(calls[item.key()]));
      }

      model->loss(tokens(1), tokens(2)).backward();

      for (const auto& [name, count] : calls) EXPECT_EQ(count, 1) << name;
    }
  }
}

TEST(RecomputeTest, gradients_lie_where_they_are_asked_to) {
  for (const Recompute level : kLevels) {
    SCOPED_TRACE(static_cast<int>(level));
    const auto model = model_of(kVariants[0], level);
    std::map<const void*, Tensor> places;  // by weight
    model->write_gradients_into({.lend = [&](const Tensor& weight) {
      EXPECT_EQ(places.count(weight.data_ptr()), 0U) << "a place was asked for twice";
      const Tensor memory = torch::full_like(weight, 1e9);
      places[weight.data_ptr()] = memory;
      return at::alias(memory);
    }});

    model->loss(tokens(1), tokens(2)).backward();

    std::size_t placed = 0;
    for (const Tensor& parameter : model->parameters()) {
      const auto place = places.find(parameter.data_ptr());
      if (place == places.end()) continue;
      EXPECT_EQ(parameter.grad().data_ptr(), place->second.data_ptr());
      ++placed;
    }
    EXPECT_EQ(placed, static_cast<std::size_t>(4 * model->config().layers + 1));
  }
}

TEST(RecomputeTest, gradients_are_taken_over_once_each) {
  for (const Recompute level : kLevels) {
    SCOPED_TRACE(static_cast<int>(level));
    const auto model = model_of(kVariants[0], level), expected = model_of(kVariants[0], level);
    std::map<const void*, Tensor> places;  // by weight
    std::map<const void*, int> taken;
    model->write_gradients_into({.lend =
                                     [&](const Tensor& weight) {
                                       const Tensor memory = torch::full_like(weight, 1e9);
                                       places[weight.data_ptr()] = memory;
                                       return at::alias(memory);
                                     },
                                 .take_over =
                                     [&](const Tensor& weight) {
                                       ++taken[weight.data_ptr()];
                                       return true;
                                     }});

    expected->loss(tokens(1), tokens(2)).backward();
    model->loss(tokens(1), tokens(2)).backward();

    const auto wanted = expected->named_parameters();
    for (const auto& item : model->named_parameters()) {
      const void* weight = item.value().data_ptr();
      if (taken.count(weight) == 0) continue;
      EXPECT_EQ(taken[weight], 1) << item.key();
      EXPECT_FALSE(item.value().grad().defined()) << item.key();
      EXPECT_TRUE(torch::equal(places.at(weight), wanted[item.key()].grad())) << item.key();
    }
    EXPECT_EQ(taken.size(), static_cast<std::size_t>(4 * model->config().layers));
  }
}

TEST(RecomputeTest, losses_without_gradients_are_the_same) {
  for (const Recompute level : kLevels) {
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::equal(model_of(kVariants[0], level)->loss(tokens(1), tokens(2)),
                             model_of(kVariants[0], Recompute::kNone)->loss(tokens(1), tokens(2))));
  }
}

TEST(RecomputeTest, other_families_are_refused) {
  ModelConfig config = preset("mlp");
  config.recompute = Recompute::kBlocks;

  EXPECT_THROW(config.validate(), core::ConfigError);
}

// sin(x) w with noise, which is drawn in each pass.
struct Counted {
  int first = 0, again = 0;
  Computation computation(const Tensor& weight) {
    return [this, weight](const Tensors& inputs, Pass pass) {
      ++(pass == Pass::kFirst ? first : again);
      EXPECT_EQ(at::GradMode::is_enabled(), pass == Pass::kAgain);
      const Tensor noisy = inputs[0].sin() * torch::rand(inputs[0].sizes(), inputs[0].options());
      return Tensors{noisy * weight, inputs[0] * 2};
    };
  }
};

TEST(RecomputeInBackwardTest, runs_twice_and_draws_the_same) {
  const Tensor x = torch::randn({5}, at::kDouble).requires_grad_(),
               weight = torch::randn({5}, at::kDouble).requires_grad_();
  torch::manual_seed(4);
  const Tensor noise = torch::rand({5}, at::kDouble), after = torch::rand({3});
  Counted counted;

  torch::manual_seed(4);
  const Tensors out = recompute_in_backward(counted.computation(weight), {x});
  EXPECT_EQ(counted.first, 1);
  EXPECT_EQ(counted.again, 0);
  out[0].sum().backward();

  EXPECT_EQ(counted.first, 1);
  EXPECT_EQ(counted.again, 1);
  EXPECT_TRUE(torch::equal(out[0], x.sin() * noise * weight));
  EXPECT_TRUE(torch::allclose(x.grad(), x.cos() * noise * weight));
  EXPECT_TRUE(torch::allclose(weight.grad(), x.sin() * noise));
  EXPECT_TRUE(torch::equal(torch::rand({3}), after)) << "backward has moved the generator";
}

TEST(RecomputeInBackwardTest, an_input_may_be_made_again) {
  const Tensor x = torch::randn({5}, at::kDouble).requires_grad_();
  int made = 0;
  const Tensor doubled = x * 2;
  const Operand operand(doubled, {[&] {
                          ++made;
                          return x.detach() * 2;
                        }});

  const Tensors out = recompute_in_backward(
      [](const Tensors& inputs, Pass) { return Tensors{inputs[0].exp()}; }, {operand});
  EXPECT_EQ(made, 0);
  out[0].sum().backward();

  EXPECT_EQ(made, 1);
  EXPECT_TRUE(torch::allclose(x.grad(), (x * 2).exp() * 2));
}

TEST(RecomputeInBackwardTest, what_nobody_differentiates_runs_once_and_as_it_is) {
  Counted counted;
  const Tensor weight = torch::ones({5}).requires_grad_();
  {
    const torch::NoGradGuard no_grad;
    recompute_in_backward(counted.computation(weight), {torch::ones({5}).requires_grad_()});
  }
  EXPECT_EQ(counted.first, 1);

  // A parameter alone needs its gradient, and gets it.
  const Tensors out = recompute_in_backward(
      [&](const Tensors& inputs, Pass) { return Tensors{inputs[0] * weight}; }, {torch::ones({5})});
  out[0].sum().backward();
  EXPECT_TRUE(torch::equal(weight.grad(), torch::ones({5})));
}

TEST(RecomputeInBackwardTest, a_second_backward_is_refused) {
  const Tensor x = torch::ones({5}).requires_grad_();
  const Tensors out = recompute_in_backward(
      [](const Tensors& inputs, Pass) { return Tensors{inputs[0].exp()}; }, {x});
  const Tensor sum = out[0].sum();

  sum.backward({}, /*retain_graph=*/true);

  EXPECT_THROW(sum.backward(), c10::Error);
}

TEST(RecomputeInBackwardTest, an_error_of_the_second_pass_comes_through) {
  const Tensor x = torch::ones({5}).requires_grad_();
  const Tensors out = recompute_in_backward(
      [](const Tensors& inputs, Pass pass) {
        if (pass == Pass::kAgain) throw core::DataError("planted");
        return Tensors{inputs[0].exp()};
      },
      {x});

  EXPECT_THROW(out[0].sum().backward(), core::DataError);
}

}  // namespace
}  // namespace sidestream::model
