// Each fused operator against LibTorch's own: values and gradients. fp32 against plain fp32 (both
// near double), bf16 against plain operators in double on the same rounded numbers.
#include "model/fused/fused_operators.hpp"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <torch/nn/functional/embedding.h>

#include "core/base/error.hpp"
#include "model/fused/block_product.hpp"
#include "model/ignored_target.hpp"
#include "tests/model/operator_outcome.hpp"

namespace sidestream::model {
namespace {

using torch::Tensor;

void compare(const Operation& operation, const Tensors& inputs) {
  fused::FusedOperators fused;
  PlainOperators plain;
  {
    SCOPED_TRACE("fp32");
    expect_near(run(fused, operation, as_type(inputs, at::kFloat)),
                run(plain, operation, as_type(inputs, at::kDouble)), 3e-6);
  }
  const Tensors rounded = as_type(inputs, at::kBFloat16);
  SCOPED_TRACE("bf16");
  expect_near(run(fused, operation, rounded), run(plain, operation, as_type(rounded, at::kDouble)),
              1.2e-2);
}

Tensor random(at::IntArrayRef shape, double scale = 1.0) {
  return torch::randn(shape, at::kDouble) * scale;
}

struct FusedOperatorsTest : testing::Test {
  FusedOperatorsTest() { torch::manual_seed(3); }
};

TEST_F(FusedOperatorsTest, norm_equals_plain) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 3, 384}, {1, 1, 7}, {3, 100, 33}}) {
    compare(
        [](Operators& ops, const Tensors& in) -> Tensors {
          return {ops.norm(in[0], {in[1], in[2]})};
        },
        {random(shape) + 0.5, random({shape[2]}), random({shape[2]})});
  }
}

TEST_F(FusedOperatorsTest, add_norm_equals_plain) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 130, 64}, {1, 1, 5}}) {
    compare(
        [](Operators& ops, const Tensors& in) -> Tensors {
          const NormedResidual out = ops.add_norm(in[0], in[1], {in[2], in[3]});
          return {out.residual_btc, out.normed_btc};
        },
        {random(shape), random(shape), random({shape[2]}), random({shape[2]})});
  }
}

TEST_F(FusedOperatorsTest, add_norm_passes_a_gradient_of_one_output_alone) {
  const auto sum = [](Operators& ops, const Tensors& in) -> Tensors {
    return {ops.add_norm(in[0], in[1], {torch::ones({8}), torch::zeros({8})}).residual_btc};
  };
  const auto normed = [](Operators& ops, const Tensors& in) -> Tensors {
    return {ops.add_norm(in[0], in[1], {in[2], in[3]}).normed_btc};
  };
  fused::FusedOperators fused;
  PlainOperators plain;
  const Tensors inputs = {random({2, 3, 8}), random({2, 3, 8}), random({8}), random({8})};

  expect_near(run(fused, normed, as_type(inputs, at::kFloat)),
              run(plain, normed, as_type(inputs, at::kFloat)), 3e-6);
  const Tensors two = {inputs[0], inputs[1]};
  expect_near(run(fused, sum, as_type(two, at::kFloat)), run(plain, sum, as_type(two, at::kFloat)),
              3e-6);
}

TEST_F(FusedOperatorsTest, linear_equals_plain) {
  struct Sizes {
    std::int64_t batch, time, in, out;
  };
  for (const Sizes& s : {Sizes{2, 65, 64, 192}, {1, 1, 2, 4}, {3, 37, 34, 322}, {1, 7, 768, 48}}) {
    SCOPED_TRACE(s.in);
    compare(
        [](Operators& ops, const Tensors& in) -> Tensors {
          return {ops.linear(in[0], {in[1], in[2]})};
        },
        {random({s.batch, s.time, s.in}), random({s.in, s.out}), random({s.out})});
  }
}

TEST_F(FusedOperatorsTest, linear_of_odd_width_falls_back_to_plain) {
  compare(
      [](Operators& ops, const Tensors& in) -> Tensors {
        return {ops.linear(in[0], {in[1], in[2]})};
      },
      {random({2, 5, 7}), random({7, 9}), random({9})});
}

TEST_F(FusedOperatorsTest, mlp_equals_plain) {
  struct Sizes {
    std::int64_t batch, time, width;
  };
  for (const Sizes& s : {Sizes{2, 65, 32}, {1, 1, 2}, {1, 130, 96}, {2, 70, 128}, {1, 65, 256}}) {
    SCOPED_TRACE(s.width);
    const std::int64_t hidden = 4 * s.width;
    compare(
        [](Operators& ops, const Tensors& in) -> Tensors {
          return {ops.mlp(in[0], {in[1], in[2]}, {in[3], in[4]}, MlpKeeps::kAll)};
        },
        {random({s.batch, s.time, s.width}), random({s.width, hidden}, 0.3), random({hidden}),
         random({hidden, s.width}, 0.3), random({s.width})});
  }
}

TEST_F(FusedOperatorsTest, mlp_is_right_far_from_zero) {
  compare(
      [](Operators& ops, const Tensors& in) -> Tensors {
        return {ops.mlp(in[0], {in[1], in[2]}, {in[3], in[4]}, MlpKeeps::kAll)};
      },
      {random({1, 64, 8}, 20.0), random({8, 32}, 3.0), random({32}), random({32, 8}), random({8})});
}

// Sums for the biases of linear and mlp over this many equal rows.
Tensors bias_gradients(Operators& ops, const Tensors& inputs, std::int64_t rows) {
  Tensors in;
  for (const Tensor& input : inputs) in.push_back(input.clone().requires_grad_());
  const Tensor x = in[0].detach().expand({1, rows, in[0].size(2)}).contiguous();
  const Tensor hidden = ops.linear(x, {in[1], in[2]});
  const Tensor y = ops.mlp(x, {in[1], in[2]}, {in[3], in[4]}, MlpKeeps::kAll);
  Tensors result = torch::autograd::grad({hidden}, {in[2]}, {torch::full_like(hidden, 0.1)});
  for (const Tensor& gradient :
       torch::autograd::grad({y}, {in[2], in[4]}, {torch::full_like(y, 0.1)}))
    result.push_back(gradient);
  return result;
}

// Of one sign: in a single running sum of fp32 the fourth digit of so many is wrong.
TEST_F(FusedOperatorsTest, bias_gradients_of_many_rows_are_as_exact_as_those_of_one) {
  constexpr std::int64_t kRows = 65536 + 3;
  const Tensors inputs = {random({1, 1, 8}), random({8, 32}), random({32}), random({32, 8}),
                          random({8})};
  fused::FusedOperators fused;
  PlainOperators plain;

  const Tensors found = bias_gradients(fused, as_type(inputs, at::kFloat), kRows),
                one = bias_gradients(plain, as_type(as_type(inputs, at::kFloat), at::kDouble), 1);

  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_LT(relative_error(found[i], one[i] * kRows), 3e-5) << i;
}

TEST_F(FusedOperatorsTest, bias_gradients_do_not_depend_on_the_threads) {
  const Tensors inputs = {random({1, 1, 64}), random({64, 768}, 0.3), random({768}),
                          random({768, 64}, 0.3), random({64})};
  fused::FusedOperators ops;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto with = [&](int threads) {
      at::set_num_threads(threads);
      Tensors gradients = bias_gradients(ops, as_type(inputs, type), 700);
      at::set_num_threads(1);
      return gradients;
    };
    const Tensors one = with(1), three = with(3);
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (type == at::kFloat && i == 1) continue;  // behind a product that may be LibTorch's
      EXPECT_TRUE(torch::equal(one[i], three[i])) << type << " " << i;
    }
  }
}

// What forward keeps lies in panels, whose width goes by the number of threads.
TEST_F(FusedOperatorsTest, mlp_is_the_same_when_backward_has_another_number_of_threads) {
  fused::FusedOperators ops;
  const Tensors inputs = as_type({random({2, 70, 128}), random({128, 512}, 0.2), random({512}),
                                  random({512, 128}, 0.2), random({128})},
                                 at::kBFloat16);
  const auto gradients = [&](int forward, int backward) {
    Tensors in;
    for (const Tensor& input : inputs) in.push_back(input.clone().requires_grad_());
    at::set_num_threads(forward);
    const Tensor y = ops.mlp(in[0], {in[1], in[2]}, {in[3], in[4]}, MlpKeeps::kAll);
    at::set_num_threads(backward);
    y.sum().backward();
    at::set_num_threads(1);
    Tensors result;
    for (const Tensor& input : in) result.push_back(input.grad());
    return result;
  };

  const Tensors one = gradients(1, 1);
  for (const auto& [forward, backward] : {std::pair{3, 1}, std::pair{1, 3}, std::pair{3, 3}}) {
    const Tensors other = gradients(forward, backward);
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_TRUE(torch::equal(one[i], other[i])) << forward << " " << backward << " " << i;
  }
}

TEST_F(FusedOperatorsTest, attention_equals_plain) {
  struct Sizes {
    std::int64_t batch, time, heads, head_width;
  };
  for (const Sizes& s : {Sizes{2, 64, 2, 64},
                         {1, 1, 1, 64},
                         {2, 5, 3, 16},
                         {1, 33, 2, 32},
                         {1, 97, 2, 64},
                         {1, 256, 1, 64},
                         {1, 200, 2, 80},
                         {1, 70, 1, 6}}) {
    SCOPED_TRACE(std::to_string(s.time) + " x " + std::to_string(s.head_width));
    compare(
        [&](Operators& ops, const Tensors& in) -> Tensors {
          return {ops.attention(in[0], {.heads = s.heads, .dropout = 0})};
        },
        {random({s.batch, s.time, 3 * s.heads * s.head_width})});
  }
}

TEST_F(FusedOperatorsTest, attention_is_right_with_large_scores) {
  compare(
      [&](Operators& ops, const Tensors& in) -> Tensors {
        return {ops.attention(in[0], {.heads = 2, .dropout = 0})};
      },
      {random({1, 80, 3 * 32}, 6.0)});
}

TEST_F(FusedOperatorsTest, embed_equals_plain) {
  const Tensor tokens = torch::randint(50, {3, 17}, torch::kLong);
  compare(
      [&](Operators& ops, const Tensors& in) -> Tensors {
        return {ops.embed(tokens, {.tokens_vc = in[0], .positions_pc = in[1], .tied = {}})};
      },
      {random({50, 40}), random({20, 40})});
  compare(
      [&](Operators& ops, const Tensors& in) -> Tensors {
        return {ops.embed(tokens, {.tokens_vc = in[0], .positions_pc = {}, .tied = {}})};
      },
      {random({50, 40})});
}

TEST_F(FusedOperatorsTest, embed_refuses_an_id_outside) {
  fused::FusedOperators ops;
  const Tensor tokens = torch::full({1, 2}, 50, torch::kLong);
  EXPECT_THROW(
      ops.embed(tokens, {.tokens_vc = torch::zeros({50, 4}), .positions_pc = {}, .tied = {}}),
      core::DataError);
}

// Loss through embedding and tied head, with the sum of both gradients of the weight. The oracle
// has whole logits.
Operation tied_loss(const Tensor& tokens, const Tensor& targets, const LossOptions& options) {
  return [=](Operators& ops, const Tensors& in) -> Tensors {
    const bool is_oracle = dynamic_cast<PlainOperators*>(&ops) != nullptr;
    const Embeddings embeddings{
        .tokens_vc = in[0], .positions_pc = {}, .tied = c10::make_intrusive<TiedGradient>()};
    return {ops.next_token_loss(
        ops.embed(tokens, embeddings), embeddings, targets,
        {.vocab_size = options.vocab_size, .chunks = is_oracle ? 1 : options.chunks})};
  };
}

TEST_F(FusedOperatorsTest, next_token_loss_equals_plain) {
  for (const std::int64_t chunks : {0, 1, 3, 5}) {
    SCOPED_TRACE(chunks);
    const Tensor tokens = torch::randint(70, {3, 11}, torch::kLong),
                 targets = torch::randint(70, {3, 11}, torch::kLong);
    compare(tied_loss(tokens, targets, {.vocab_size = 70, .chunks = chunks}),
            {random({70, 32}, 0.5)});
  }
}

TEST_F(FusedOperatorsTest, next_token_loss_leaves_out_targets_that_do_not_count) {
  for (const std::int64_t chunks : {1, 5}) {
    SCOPED_TRACE(chunks);
    const Tensor tokens = torch::randint(70, {3, 11}, torch::kLong),
                 targets = torch::randint(70, {3, 11}, torch::kLong);
    targets.view(-1).narrow(0, 5, 11).fill_(kIgnoredTarget);  // one chunk has no other
    compare(tied_loss(tokens, targets, {.vocab_size = 70, .chunks = chunks}),
            {random({70, 32}, 0.5)});
  }
}

TEST_F(FusedOperatorsTest, next_token_loss_of_no_target_that_counts_is_that_of_libtorch) {
  fused::FusedOperators ops;
  const Tensor tokens = torch::randint(20, {2, 3}, torch::kLong),
               targets = torch::full({2, 3}, kIgnoredTarget, torch::kLong);

  const Outcome found = run(ops, tied_loss(tokens, targets, {.vocab_size = 20, .chunks = 2}),
                            as_type({random({20, 8})}, at::kFloat));

  EXPECT_TRUE(found.values[0].isnan().item<bool>());
  EXPECT_EQ(found.gradients[0].abs().sum().item<double>(), 0);
}

// In bf16 a chunk a row would leave as many roundings of the sum as there are rows.
TEST_F(FusedOperatorsTest, next_token_loss_in_chunks_rounds_its_gradients_once) {
  constexpr double kRounding = 1.0 / 512;  // of bf16, half of a last bit
  const Tensor tokens = torch::randint(70, {8, 32}, torch::kLong),
               targets = torch::randint(7, {8, 32}, torch::kLong);
  const Tensors inputs = as_type({random({70, 32}, 0.5)}, at::kBFloat16);
  fused::FusedOperators ops;
  const auto gradient = [&](std::int64_t chunks) {
    const Operation loss = [&](Operators& operators, const Tensors& in) -> Tensors {
      return {operators.next_token_loss(torch::nn::functional::embedding(tokens, in[0]),
                                        {.tokens_vc = in[1], .positions_pc = {}, .tied = {}},
                                        targets, {.vocab_size = 70, .chunks = chunks})};
    };
    return run(ops, loss, {inputs[0], inputs[0]}).gradients[1];
  };

  EXPECT_LT(relative_error(gradient(256), gradient(1)), kRounding);
}

TEST_F(FusedOperatorsTest, next_token_loss_masks_padding) {
  const Tensor tokens = torch::randint(61, {2, 9}, torch::kLong),
               targets = torch::randint(61, {2, 9}, torch::kLong);
  const Operation operation = tied_loss(tokens, targets, {.vocab_size = 61, .chunks = 2});
  const Tensors inputs = {random({80, 32}, 0.5)};
  fused::FusedOperators fused;

  compare(operation, inputs);
  const Tensor gradient = run(fused, operation, as_type(inputs, at::kFloat)).gradients[0];
  EXPECT_EQ(gradient.narrow(0, 61, 19).abs().max().item<double>(), 0);
}

// What fills no strip hardly shows in the norm of all: the last rows' gradient is compared by
// itself, and they are targets, so that the loss shows them, too.
TEST_F(FusedOperatorsTest, next_token_loss_of_a_large_odd_vocabulary) {
  const Tensor tokens = torch::randint(1009, {2, 33}, torch::kLong),
               targets = torch::randint(1009, {2, 33}, torch::kLong);
  targets.view(-1)[0].fill_(1008);
  targets.view(-1)[1].fill_(1000);
  const Operation of_whole = tied_loss(tokens, targets, {.vocab_size = 1009, .chunks = 0});
  const Operation of_parts = [&](Operators& ops, const Tensors& in) {
    return of_whole(ops, {torch::cat({in[0], in[1], in[2]})});
  };

  compare(of_parts, {random({1000, 48}, 0.3), random({8, 48}, 0.3), random({1, 48}, 0.3)});
}

TEST_F(FusedOperatorsTest, next_token_loss_scales_with_the_incoming_gradient) {
  fused::FusedOperators ops;
  const Tensor targets = torch::randint(20, {2, 4}, torch::kLong);
  const auto gradient = [&](double factor) {
    torch::manual_seed(5);
    const Tensor x = torch::randn({2, 4, 8}).requires_grad_(),
                 weight = torch::randn({20, 8}).requires_grad_();
    const Embeddings embeddings{.tokens_vc = weight, .positions_pc = {}, .tied = {}};
    (ops.next_token_loss(x, embeddings, targets, {.vocab_size = 20, .chunks = 0}) * factor)
        .backward();
    return weight.grad();
  };
  EXPECT_LT(relative_error(gradient(8.0), gradient(1.0) * 8.0), 1e-6);
}

TEST_F(FusedOperatorsTest, next_token_loss_refuses_a_target_outside) {
  fused::FusedOperators ops;
  const Embeddings embeddings{.tokens_vc = torch::zeros({24, 8}), .positions_pc = {}, .tied = {}};
  EXPECT_THROW(
      ops.next_token_loss(torch::zeros({1, 1, 8}), embeddings,
                          torch::full({1, 1}, 20, torch::kLong), {.vocab_size = 20, .chunks = 0}),
      core::DataError);
}

TEST_F(FusedOperatorsTest, results_do_not_depend_on_the_run) {
  fused::FusedOperators ops;
  const Tensors inputs = {random({2, 70, 64}), random({64, 256}, 0.2), random({256}),
                          random({256, 64}, 0.2), random({64})};
  const Operation operation = [](Operators& o, const Tensors& in) -> Tensors {
    return {o.mlp(in[0], {in[1], in[2]}, {in[3], in[4]}, MlpKeeps::kAll)};
  };

  const Outcome one = run(ops, operation, as_type(inputs, at::kBFloat16)),
                two = run(ops, operation, as_type(inputs, at::kBFloat16));

  EXPECT_TRUE(torch::equal(one.values[0], two.values[0]));
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    EXPECT_TRUE(torch::equal(one.gradients[i], two.gradients[i])) << i;
  }
}

}  // namespace
}  // namespace sidestream::model
