// Names, shapes, initialisation and the behaviour of whole models.
#include "model/language_model.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>

#include "core/base/error.hpp"

namespace sidestream::model {
namespace {

using torch::Tensor;

std::shared_ptr<LanguageModel> micro(const std::string& name = "gpt2-micro",
                                     FusedOps fused = FusedOps::kOn) {
  ModelConfig config = preset(name);
  config.fused_ops = fused;
  auto model = make_language_model(config);
  model->initialise(1);
  return model;
}

Tensor tokens(std::int64_t batch, std::int64_t time, std::uint64_t seed, std::int64_t vocab = 512) {
  torch::manual_seed(seed);
  return torch::randint(vocab, {batch, time}, torch::kLong);
}

TEST(LanguageModelTest, parameters_have_published_names_and_shapes) {
  const auto model = micro();

  const auto parameters = model->named_parameters();

  EXPECT_EQ(parameters.size(), 2 + 2 * 12 + 2u);
  EXPECT_EQ(parameters["transformer.wte.weight"].sizes(), (std::vector<std::int64_t>{512, 32}));
  EXPECT_EQ(parameters["transformer.wpe.weight"].sizes(), (std::vector<std::int64_t>{64, 32}));
  EXPECT_EQ(parameters["transformer.h.1.attn.c_attn.weight"].sizes(),
            (std::vector<std::int64_t>{32, 96}));
  EXPECT_EQ(parameters["transformer.h.1.mlp.c_proj.weight"].sizes(),
            (std::vector<std::int64_t>{128, 32}));
  EXPECT_EQ(parameters["transformer.ln_f.bias"].sizes(), (std::vector<std::int64_t>{32}));
}

TEST(LanguageModelTest, parameters_are_as_many_as_counted) {
  for (const char* name : {"gpt2-micro", "gpt2-tiny", "gpt2-mini", "mlp"}) {
    std::int64_t count = 0;
    for (const Tensor& parameter : make_language_model(preset(name))->parameters())
      count += parameter.numel();
    EXPECT_EQ(count, parameter_count(preset(name))) << name;
  }
}

// Weights that are on their way hold nonsense until somebody waits for them.
TEST(LanguageModelTest, every_weight_is_waited_for_before_it_is_read) {
  const Tensor x = tokens(2, 8, 1), y = tokens(2, 8, 2);
  for (const FusedOps fused : {FusedOps::kOn, FusedOps::kOff}) {
    for (const char* name : {"gpt2-micro", "mlp"}) {
      for (const Recompute level : {Recompute::kNone, Recompute::kAttention, Recompute::kBlocks}) {
        ModelConfig config = preset(name);
        if (config.family == "mlp" && level != Recompute::kNone) continue;
        SCOPED_TRACE(name);
        config.fused_ops = fused;
        config.recompute = level;
        const auto model = make_language_model(config);
        model->initialise(1);
        const Tensor expected = model->loss(x, y).detach();
        std::map<const void*, Tensor> arriving;
        for (const Tensor& parameter : model->parameters()) {
          arriving[parameter.unsafeGetTensorImpl()] = parameter.detach().clone();
          parameter.detach().fill_(std::numeric_limits<float>::quiet_NaN());
        }

        model->wait_for_weights([&](const Tensor& weight) {
          const torch::NoGradGuard no_grad;
          const auto found = arriving.find(weight.unsafeGetTensorImpl());
          if (found == arriving.end()) return;
          weight.detach().copy_(found->second);
          arriving.erase(found);
        });

        EXPECT_TRUE(model->loss(x, y).equal(expected));
        EXPECT_TRUE(arriving.empty());
      }
    }
  }
}

TEST(LanguageModelTest, initialise_is_a_pure_function_of_the_seed) {
  const auto one = micro();
  torch::manual_seed(99);
  const auto two = micro();
  const auto other = make_language_model(preset("gpt2-micro"));
  other->initialise(2);

  const Tensor weight = one->named_parameters()["transformer.h.0.mlp.c_fc.weight"];

  EXPECT_TRUE(torch::equal(weight, two->named_parameters()["transformer.h.0.mlp.c_fc.weight"]));
  EXPECT_FALSE(torch::equal(weight, other->named_parameters()["transformer.h.0.mlp.c_fc.weight"]));
}

TEST(LanguageModelTest, initialise_has_published_deviations) {
  const auto model = make_language_model(preset("gpt2-tiny"));
  model->initialise(3);
  const auto parameters = model->named_parameters();

  EXPECT_NEAR(parameters["transformer.wte.weight"].std().item<double>(), 0.02, 5e-4);
  EXPECT_NEAR(parameters["transformer.h.0.mlp.c_fc.weight"].std().item<double>(), 0.02, 5e-4);
  EXPECT_NEAR(parameters["transformer.h.0.mlp.c_proj.weight"].std().item<double>(),
              0.02 / std::sqrt(8.0), 2e-4);
  EXPECT_EQ(parameters["transformer.h.0.mlp.c_proj.bias"].abs().max().item<double>(), 0);
  EXPECT_EQ(parameters["transformer.ln_f.weight"].min().item<double>(), 1);
}

TEST(LanguageModelTest, loss_of_a_new_model_is_near_uniform) {
  for (const char* name : {"gpt2-micro", "mlp"}) {
    const double loss = micro(name)->loss(tokens(2, 16, 1), tokens(2, 16, 2)).item<double>();
    EXPECT_NEAR(loss, std::log(512.0), 0.1) << name;
  }
}

TEST(LanguageModelTest, loss_learns_a_fixed_batch) {
  for (const char* name : {"gpt2-micro", "mlp"}) {
    const auto model = micro(name);
    torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
    const Tensor x = tokens(2, 16, 1), y = tokens(2, 16, 2);
    double loss_value = 0;
    for (int step = 0; step < 40; ++step) {
      optimizer.zero_grad();
      Tensor loss = model->loss(x, y);
      loss.backward();
      optimizer.step();
      loss_value = loss.item<double>();
    }
    EXPECT_LT(loss_value, 1.0) << name;
  }
}

// What autograd takes over is the memory that was handed out: no copy, and the same numbers.
TEST(LanguageModelTest, gradients_lie_where_they_are_asked_to) {
  for (const char* name : {"gpt2-micro", "mlp"}) {
    const auto expected = micro(name), model = micro(name);
    std::map<const void*, Tensor> places;  // by weight
    model->write_gradients_into({.lend = [&](const Tensor& weight) {
      const bool first = places.count(weight.data_ptr()) == 0;
      EXPECT_TRUE(first) << "a place was asked for twice";
      const Tensor memory = torch::full_like(weight, 1e9);
      places[weight.data_ptr()] = memory;
      return at::alias(memory);
    }});
    const Tensor inputs = tokens(2, 16, 3), targets = tokens(2, 16, 4);

    expected->loss(inputs, targets).backward();
    model->loss(inputs, targets).backward();

    std::size_t placed = 0;
    for (const auto& item : model->named_parameters()) {
      const Tensor gradient = item.value().grad();
      EXPECT_TRUE(torch::equal(gradient, expected->named_parameters()[item.key()].grad()))
          << item.key();
      const auto place = places.find(item.value().data_ptr());
      if (place == places.end()) continue;
      EXPECT_EQ(gradient.data_ptr(), place->second.data_ptr()) << item.key();
      ++placed;
    }
    EXPECT_EQ(placed, places.size());
    const bool has_attention = std::string(name) != "mlp";
    EXPECT_EQ(placed,
              static_cast<std::size_t>((has_attention ? 4 : 2) * model->config().layers + 1));
  }
}

// Each as soon as it is there, that of the second layer of an MLP before that of the first.
TEST(LanguageModelTest, gradients_that_are_taken_over_are_not_handed_to_autograd) {
  const auto expected = micro(), model = micro();
  std::map<const void*, Tensor> places;  // by weight
  std::map<const void*, std::size_t> order;
  const auto take_over = [&](const Tensor& weight) {
    EXPECT_TRUE(order.emplace(weight.data_ptr(), order.size()).second);
    return true;
  };
  model->write_gradients_into({.lend =
                                   [&](const Tensor& weight) {
                                     const Tensor memory = torch::full_like(weight, 1e9);
                                     places[weight.data_ptr()] = memory;
                                     return at::alias(memory);
                                   },
                               .take_over = take_over});
  const Tensor inputs = tokens(2, 16, 3), targets = tokens(2, 16, 4);

  expected->loss(inputs, targets).backward();
  model->loss(inputs, targets).backward();

  const auto weights = model->named_parameters(), expected_weights = expected->named_parameters();
  for (const auto& item : weights) {
    const Tensor wanted = expected_weights[item.key()].grad();
    const bool taken = order.count(item.value().data_ptr()) != 0;
    const Tensor& found = taken ? places.at(item.value().data_ptr()) : item.value().grad();
    EXPECT_EQ(taken, !item.value().grad().defined()) << item.key();
    EXPECT_TRUE(torch::equal(found, wanted)) << item.key();
  }
  EXPECT_EQ(order.size(), static_cast<std::size_t>(4 * model->config().layers));
  const auto place = [&](const char* name) { return order.at(weights[name].data_ptr()); };
  EXPECT_LT(place("transformer.h.0.mlp.c_proj.weight"), place("transformer.h.0.mlp.c_fc.weight"));
}

TEST(LanguageModelTest, gradients_that_nobody_asks_for_are_not_offered) {
  const auto model = micro();
  model->write_gradients_into({.lend = [](const Tensor& weight) { return at::empty_like(weight); },
                               .take_over =
                                   [](const Tensor&) {
                                     ADD_FAILURE() << "of a weight that is no input of grad()";
                                     return true;
                                   }});
  const Tensor loss = model->loss(tokens(2, 16, 3), tokens(2, 16, 4));
  const Tensor position = model->named_parameters()["transformer.wpe.weight"];

  EXPECT_TRUE(torch::autograd::grad({loss}, {position})[0].defined());
}

TEST(LanguageModelTest, gradients_without_a_place_have_memory_of_their_own) {
  const auto model = micro();
  model->write_gradients_into({.lend = [](const Tensor&) { return Tensor(); }});
  {
    const torch::NoGradGuard no_grad;
    model->loss(tokens(2, 16, 3), tokens(2, 16, 4));
  }

  model->loss(tokens(2, 16, 3), tokens(2, 16, 4)).backward();

  for (const Tensor& parameter : model->parameters()) EXPECT_TRUE(parameter.grad().defined());
}

TEST(LanguageModelTest, padding_changes_neither_loss_nor_gradients) {
  ModelConfig config = preset("gpt2-micro");
  config.vocab_size = config.padded_vocab_size = 500;
  const auto exact = make_language_model(config);
  config.padded_vocab_size = 512;
  const auto padded = make_language_model(config);
  exact->initialise(1);
  padded->initialise(1);
  const Tensor x = tokens(2, 16, 1, 500), y = tokens(2, 16, 2, 500);

  const Tensor exact_loss = exact->loss(x, y), padded_loss = padded->loss(x, y);
  exact_loss.backward();
  padded_loss.backward();

  EXPECT_NEAR(exact_loss.item<double>(), padded_loss.item<double>(), 1e-6);
  const Tensor padded_grad = padded->named_parameters()["transformer.wte.weight"].grad();
  EXPECT_EQ(padded_grad.narrow(0, 500, 12).abs().max().item<double>(), 0);
  EXPECT_TRUE(torch::allclose(exact->named_parameters()["transformer.wte.weight"].grad(),
                              padded_grad.narrow(0, 0, 500), 1e-4, 1e-7));
  EXPECT_EQ(padded->next_token_logits(x).sizes(), (std::vector<std::int64_t>{2, 500}));
}

TEST(LanguageModelTest, next_token_logits_give_the_loss_of_the_last_position) {
  const auto model = micro();
  const Tensor x = tokens(1, 1, 1), y = tokens(1, 1, 2);

  const Tensor logits = model->next_token_logits(x);

  EXPECT_FALSE(logits.requires_grad());
  EXPECT_NEAR(torch::nn::functional::cross_entropy(logits, y.view(-1)).item<double>(),
              model->loss(x, y).item<double>(), 1e-5);
}

TEST(LanguageModelTest, dropout_acts_in_training_only) {
  ModelConfig config = preset("gpt2-micro");
  config.dropout = 0.5;
  const auto model = make_language_model(config);
  model->initialise(1);
  const Tensor x = tokens(2, 16, 1), y = tokens(2, 16, 2);

  const double one = model->loss(x, y).item<double>(), two = model->loss(x, y).item<double>();
  model->eval();
  const double three = model->loss(x, y).item<double>(), four = model->loss(x, y).item<double>();

  EXPECT_NE(one, two);
  EXPECT_EQ(three, four);
}

TEST(LanguageModelTest, loss_refuses_a_sequence_longer_than_the_context) {
  EXPECT_THROW(micro()->loss(tokens(1, 65, 1), tokens(1, 65, 2)), core::ConfigError);
}

}  // namespace
}  // namespace sidestream::model
