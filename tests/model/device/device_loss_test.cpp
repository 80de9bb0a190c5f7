// The loss of device operators with its autograd against that of plain operators.
#include "model/ignored_target.hpp"
#include "tests/model/device/compared_operators.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

struct DeviceLossTest : testing::Test {
  DeviceLossTest() { torch::manual_seed(3); }
};

// Through embedding and tied head, with the sum of both gradients of the weight.
Operation tied_loss(const Tensor& tokens, const Tensor& targets, const LossOptions& options) {
  return [=](Operators& ops, const Tensors& in) -> Tensors {
    const Embeddings embeddings{
        .tokens_vc = in[0], .positions_pc = {}, .tied = c10::make_intrusive<TiedGradient>()};
    return {ops.next_token_loss(ops.embed(tokens, embeddings), embeddings, targets, options)};
  };
}

TEST_F(DeviceLossTest, next_token_loss_equals_plain_in_any_number_of_chunks) {
  for (const std::int64_t chunks : {0, 1, 3, 5, 100}) {
    SCOPED_TRACE(chunks);
    compare(tied_loss(ids(70, {3, 11}), ids(70, {3, 11}), {.vocab_size = 70, .chunks = chunks}),
            {random({70, 32}, 0.5)});
    compare(tied_loss(ids(70, {3, 11}), ids(70, {3, 11}), {.vocab_size = 70, .chunks = chunks}),
            {random({70, 32}, 0.5)}, tested_queue_with_products());
  }
}

TEST_F(DeviceLossTest, next_token_loss_leaves_out_targets_that_do_not_count) {
  for (const std::int64_t chunks : {1, 5}) {
    SCOPED_TRACE(chunks);
    const Tensor targets = ids(70, {3, 11});
    targets.view(-1).narrow(0, 5, 11).fill_(kIgnoredTarget);  // one chunk has no other
    compare(tied_loss(ids(70, {3, 11}), targets, {.vocab_size = 70, .chunks = chunks}),
            {random({70, 32}, 0.5)});
  }
}

TEST_F(DeviceLossTest, next_token_loss_of_no_target_that_counts_is_that_of_libtorch) {
  DeviceOperators operators(tested_queue());
  const Tensor targets = ids(20, {2, 3}).fill_(kIgnoredTarget);

  const Outcome found =
      run(operators, tied_loss(ids(20, {2, 3}), targets, {.vocab_size = 20, .chunks = 2}),
          {device::random({20, 8}, at::kFloat)});

  EXPECT_TRUE(found.values[0].isnan().item<bool>());
  EXPECT_EQ(found.gradients[0].abs().sum().item<double>(), 0);
}

// In bf16 a chunk a row would leave as many roundings of the sum as there are rows. On the
// processor each chunk's product is rounded beside it, on a GPU it is not.
TEST_F(DeviceLossTest, next_token_loss_in_chunks_rounds_the_sum_of_gradients_once) {
  constexpr double kRounding = 1.0 / 512;  // of bf16, half of a last bit
  const Tensor targets = ids(7, {8, 32}), x = device::random({8, 32, 32}, at::kBFloat16),
               weight = device::random({70, 32}, at::kBFloat16, 0.5);
  DeviceOperators operators(tested_queue());
  const auto gradient = [&](std::int64_t chunks) {
    const Operation loss = [&](Operators& ops, const Tensors& in) -> Tensors {
      return {ops.next_token_loss(in[0], {.tokens_vc = in[1], .positions_pc = {}, .tied = {}},
                                  targets, {.vocab_size = 70, .chunks = chunks})};
    };
    return run(operators, loss, {x, weight}).gradients[1];
  };

  EXPECT_LT(relative_error(gradient(256), gradient(1)), 1.5 * kRounding);
}

TEST_F(DeviceLossTest, next_token_loss_masks_padding) {
  const Operation operation =
      tied_loss(ids(61, {2, 9}), ids(61, {2, 9}), {.vocab_size = 61, .chunks = 2});
  const Tensors inputs = {random({80, 32}, 0.5)};
  DeviceOperators operators(tested_queue());

  compare(operation, inputs);
  const Tensor weight = inputs[0].to(tested_device(), at::kFloat);
  const Tensor gradient = run(operators, operation, {weight}).gradients[0];
  EXPECT_EQ(gradient.narrow(0, 61, 19).abs().max().item<double>(), 0);
}

// The last rows' gradient by itself: it hardly shows in the norm of all. As targets they show in
// the loss, too.
TEST_F(DeviceLossTest, next_token_loss_of_a_large_odd_vocabulary) {
  const Tensor targets = ids(1009, {2, 33});
  targets.view(-1)[0].fill_(1008);
  targets.view(-1)[1].fill_(1000);
  const Operation of_whole =
      tied_loss(ids(1009, {2, 33}), targets, {.vocab_size = 1009, .chunks = 0});
  const Operation of_parts = [&](Operators& ops, const Tensors& in) {
    return of_whole(ops, {torch::cat({in[0], in[1], in[2]})});
  };

  compare(of_parts, {random({1000, 48}, 0.3), random({8, 48}, 0.3), random({1, 48}, 0.3)});
}

// Head and embedding write one gradient, where the weight's is to lie.
TEST_F(DeviceLossTest, the_gradient_of_a_tied_weight_lies_where_it_is_asked_to) {
  for (const std::int64_t chunks : {1, 3}) {
    const Operation loss =
        tied_loss(ids(70, {3, 11}), ids(70, {3, 11}), {.vocab_size = 70, .chunks = chunks});
    const Tensor weight = device::random({70, 32}, at::kBFloat16, 0.5);
    DeviceOperators own(tested_queue()), placed(tested_queue());
    Tensor place;
    placed.write_gradients_into({.lend = [&](const Tensor& one) {
      place = torch::full_like(one, 1e9);
      return at::alias(place);
    }});

    const Tensor found = run(placed, loss, {weight}).gradients[0];

    EXPECT_TRUE(torch::equal(found, run(own, loss, {weight}).gradients[0]));
    EXPECT_EQ(found.data_ptr(), place.data_ptr());
  }
}

// An embedding that is not the head's counterpart takes nothing, and so nothing is left for it.
TEST_F(DeviceLossTest, a_tied_gradient_that_nobody_awaits_is_the_heads) {
  const Tensor tokens = ids(70, {3, 11}), targets = ids(70, {3, 11});
  PlainOperators plain;
  const Operation loss = [&](Operators& head, const Tensors& in) -> Tensors {
    const Embeddings embeddings{
        .tokens_vc = in[0], .positions_pc = {}, .tied = c10::make_intrusive<TiedGradient>()};
    return {head.next_token_loss(plain.embed(tokens, embeddings), embeddings, targets,
                                 {.vocab_size = 70})};
  };
  compare(loss, {random({70, 32}, 0.5)});
}

TEST_F(DeviceLossTest, a_tied_gradient_is_scaled_as_a_whole) {
  DeviceOperators operators(tested_queue());
  const Tensor tokens = ids(70, {3, 11}), targets = ids(70, {3, 11}),
               rows = device::random({70, 32}, at::kFloat, 0.5),
               scale = at::full({}, 1024, at::kFloat).to(tested_device());
  const auto gradient = [&](const Tensor& expected, const Tensor& given) {
    const Tensor weight = rows.clone().requires_grad_();
    const Operation loss =
        tied_loss(tokens, targets, {.vocab_size = 70, .chunks = 2, .scale = expected});
    loss(operators, {weight})[0].backward(given);
    return weight.grad();
  };

  EXPECT_TRUE(torch::equal(gradient(scale, scale), gradient({}, {}) * 1024));
}

Tensor small_loss(Operators& operators, const Tensor& x, const Tensor& weight,
                  const Tensor& scale = {}) {
  const Tensor targets = at::arange(8, tested_device()).to(at::kLong).view({2, 4});
  return operators.next_token_loss(x, {.tokens_vc = weight, .positions_pc = {}, .tied = {}},
                                   targets, {.vocab_size = 20, .chunks = 2, .scale = scale});
}

TEST_F(DeviceLossTest, next_token_loss_scales_with_the_incoming_gradient) {
  DeviceOperators operators(tested_queue());
  const auto gradient = [&](double factor) {
    torch::manual_seed(5);
    const Tensor x = device::random({2, 4, 8}, at::kFloat),
                 weight = device::random({20, 8}, at::kFloat).requires_grad_();
    (small_loss(operators, x, weight) * factor).backward();
    return weight.grad();
  };
  EXPECT_LT(relative_error(gradient(8.0), gradient(1.0) * 8.0), 1e-6);
}

// The gradient that comes is what was expected, or a multiple of it.
TEST_F(DeviceLossTest, next_token_loss_knows_its_scale_before_the_gradient_comes) {
  DeviceOperators operators(tested_queue());
  const Tensor scale = at::full({}, 1024, at::kFloat).to(tested_device());
  const auto gradient = [&](const Tensor& expected, const Tensor& given) {
    torch::manual_seed(5);
    const Tensor x = device::random({2, 4, 8}, at::kFloat),
                 weight = device::random({20, 8}, at::kFloat).requires_grad_();
    const Tensor loss = small_loss(operators, x, weight, expected);
    loss.backward(given);
    return weight.grad();
  };
  const Tensor exact = gradient({}, {}) * 1024;

  EXPECT_TRUE(torch::equal(gradient(scale, scale), exact));
  EXPECT_TRUE(torch::equal(gradient(scale, scale * 4), exact * 4));
  EXPECT_TRUE(torch::equal(gradient(scale, {}), exact / 1024));
}

// Of 32768 rows each has a gradient of some 1e-7, of which fp16 has two steps.
TEST_F(DeviceLossTest, next_token_loss_in_fp16_keeps_small_gradients_by_its_scale) {
  DeviceOperators operators(tested_queue());
  PlainOperators plain;
  torch::manual_seed(5);
  const Tensor x = device::random({1, 32768, 16}, at::kHalf, 0.5),
               weight = device::random({256, 16}, at::kHalf, 0.5), targets = ids(256, {1, 32768});
  const auto x_gradient = [&](Operators& ops, at::ScalarType dtype, const Tensor& scale) {
    const Tensor leaf = x.to(dtype).detach().requires_grad_();
    ops.next_token_loss(leaf, {.tokens_vc = weight.to(dtype), .positions_pc = {}, .tied = {}},
                        targets, {.vocab_size = 256, .chunks = 1, .scale = scale})
        .backward(scale);
    return leaf.grad();
  };
  const Tensor exact = x_gradient(plain, at::kDouble, {}),
               scale = at::full({}, 65536, at::kFloat).to(tested_device());

  const Tensor found = x_gradient(operators, at::kHalf, scale).to(at::kDouble) / 65536;

  EXPECT_LT(relative_error(found, exact), 2e-3);
  EXPECT_GT(relative_error(x_gradient(operators, at::kHalf, {}), exact), 5e-3) << "without it";
}

TEST_F(DeviceLossTest, next_token_loss_without_gradients_has_the_same_value) {
  DeviceOperators operators(tested_queue());
  const Tensor x = device::random({2, 4, 8}, at::kFloat),
               weight = device::random({20, 8}, at::kFloat).requires_grad_();

  const Tensor with = small_loss(operators, x, weight);
  const torch::NoGradGuard no_grad;

  EXPECT_TRUE(torch::equal(small_loss(operators, x, weight), with));
}

TEST_F(DeviceLossTest, next_token_loss_refuses_a_second_backward) {
  DeviceOperators operators(tested_queue());
  const Tensor weight = device::random({20, 8}, at::kFloat).requires_grad_();
  const Tensor loss = small_loss(operators, device::random({2, 4, 8}, at::kFloat), weight);
  loss.backward({}, /*retain_graph=*/true);

  EXPECT_THROW(loss.backward(), c10::Error);
}

}  // namespace
}  // namespace sidestream::model::device
