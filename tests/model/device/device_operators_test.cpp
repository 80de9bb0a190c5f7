// Device operators with their autograd against plain operators.
#include "tests/model/device/compared_operators.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

struct DeviceOperatorsTest : testing::Test {
  DeviceOperatorsTest() { torch::manual_seed(3); }
};

TEST_F(DeviceOperatorsTest, norm_equals_plain) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 3, 384}, {1, 1, 7}, {3, 100, 33}}) {
    compare(
        [](Operators& ops, const Tensors& in) -> Tensors {
          return {ops.norm(in[0], {in[1], in[2]})};
        },
        {random(shape) + 0.5, random({shape[2]}), random({shape[2]})});
  }
}

const Operation kAddNorm = [](Operators& ops, const Tensors& in) -> Tensors {
  const NormedResidual out = ops.add_norm(in[0], in[1], {in[2], in[3]});
  return {out.residual_btc, out.normed_btc};
};

TEST_F(DeviceOperatorsTest, add_norm_equals_plain) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 130, 64}, {1, 1, 5}}) {
    compare(kAddNorm, {random(shape), random(shape), random({shape[2]}), random({shape[2]})});
  }
}

TEST_F(DeviceOperatorsTest, add_norm_passes_a_gradient_of_one_output_alone) {
  const Tensors inputs = {random({2, 3, 8}), random({2, 3, 8}), random({8}), random({8})};

  compare(
      [](Operators& ops, const Tensors& in) -> Tensors {
        return {ops.add_norm(in[0], in[1], {in[2], in[3]}).normed_btc};
      },
      inputs);
  compare(
      [](Operators& ops, const Tensors& in) -> Tensors {
        const Tensor one = at::ones({8}, in[0].options()), zero = at::zeros_like(one);
        return {ops.add_norm(in[0], in[1], {one, zero}).residual_btc};
      },
      {inputs[0], inputs[1]});
}

TEST_F(DeviceOperatorsTest, norm_wider_than_the_kernels_is_plain) {
  compare(kAddNorm, {random({1, 2, kWidestNorm + 1}), random({1, 2, kWidestNorm + 1}),
                     random({kWidestNorm + 1}), random({kWidestNorm + 1})});
}

TEST_F(DeviceOperatorsTest, linear_equals_plain) {
  struct Sizes {
    std::int64_t batch, time, in, out;
  };
  for (const LaunchQueuePtr& queue : {tested_queue(), tested_queue_with_products()}) {
    for (const Sizes& s : {Sizes{2, 65, 64, 192}, {1, 1, 2, 4}, {3, 37, 33, 321}}) {
      SCOPED_TRACE(s.in);
      compare(
          [](Operators& ops, const Tensors& in) -> Tensors {
            return {ops.linear(in[0], {in[1], in[2]})};
          },
          {random({s.batch, s.time, s.in}), random({s.in, s.out}), random({s.out})}, queue);
    }
  }
}

const Operation kMlp = [](Operators& ops, const Tensors& in) -> Tensors {
  return {ops.mlp(in[0], {in[1], in[2]}, {in[3], in[4]}, MlpKeeps::kAll)};
};

Tensors mlp_inputs(std::int64_t batch, std::int64_t time, std::int64_t width) {
  const std::int64_t hidden = 4 * width;
  return {random({batch, time, width}), random({width, hidden}, 0.3), random({hidden}),
          random({hidden, width}, 0.3), random({width})};
}

// An operand that is made again, and an MLP that keeps less, are the same operators on the same
// numbers.
void expect_no_bit_changed_by_making_again(const LaunchQueuePtr& queue, at::ScalarType dtype,
                                           const std::vector<MlpKeeps>& levels) {
  Tensors inputs;
  for (const Tensor& input : mlp_inputs(2, 5, 24))
    inputs.push_back(input.to(tested_device(), dtype));
  const auto with = [](MlpKeeps keeps, bool again) -> Operation {
    return [=](Operators& ops, const Tensors& in) -> Tensors {
      const Tensor kept = in[0].detach().clone();
      Operand x(in[0]);
      if (again) x.again.make = [kept] { return kept.clone(); };
      return {ops.mlp(x, {in[1], in[2]}, {in[3], in[4]}, keeps), ops.linear(x, {in[1], in[2]})};
    };
  };
  DeviceOperators device(queue);
  const Outcome all = run(device, with(MlpKeeps::kAll, false), inputs);

  for (const MlpKeeps keeps : levels) {
    const Outcome found = run(device, with(keeps, true), inputs);

    for (std::size_t i = 0; i < all.values.size(); ++i)
      EXPECT_TRUE(found.values[i].equal(all.values[i])) << i;
    for (std::size_t i = 0; i < all.gradients.size(); ++i)
      EXPECT_TRUE(found.gradients[i].equal(all.gradients[i])) << i;
  }
}

TEST_F(DeviceOperatorsTest, what_is_made_again_changes_no_bit) {
  expect_no_bit_changed_by_making_again(tested_queue(), at::kFloat,
                                        {MlpKeeps::kBeforeGelu, MlpKeeps::kInput});
  expect_no_bit_changed_by_making_again(tested_queue_with_products(), at::kBFloat16,
                                        {MlpKeeps::kBeforeGelu, MlpKeeps::kInput});
}

TEST_F(DeviceOperatorsTest, mlp_equals_plain) {
  for (const LaunchQueuePtr& queue : {tested_queue(), tested_queue_with_products()}) {
    compare(kMlp, mlp_inputs(2, 65, 32), queue);
    compare(kMlp, mlp_inputs(1, 1, 3), queue);  // of a width that such products do not take
    compare(kMlp, mlp_inputs(3, 100, 24), queue);
  }
}

// The sums for the biases of what was added come with the norm's backward.
TEST_F(DeviceOperatorsTest, branches_of_a_norm_have_the_gradients_of_their_biases) {
  const Operation operation = [](Operators& ops, const Tensors& in) -> Tensors {
    const NormWeights norm{in[7], in[8]};
    const NormedResidual attended = ops.add_norm(in[0], ops.linear(in[0], {in[1], in[2]}), norm);
    const NormedResidual end = ops.add_norm(
        attended.residual_btc,
        ops.mlp(attended.normed_btc, {in[3], in[4]}, {in[5], in[6]}, MlpKeeps::kAll), norm);
    return {end.normed_btc, end.residual_btc};
  };
  for (const LaunchQueuePtr& queue : {tested_queue(), tested_queue_with_products()}) {
    compare(operation,
            {random({2, 9, 32}), random({32, 32}, 0.3), random({32}), random({32, 64}, 0.3),
             random({64}), random({64, 32}, 0.3), random({32}), random({32}), random({32})},
            queue);
  }
}

// A norm that is made again from the kept sum is the same bits.
TEST_F(DeviceOperatorsTest, norm_of_the_sum_is_that_of_add_norm) {
  DeviceOperators operators(tested_queue());
  for (const at::ScalarType dtype : kDtypes) {
    const auto drawn = [&](at::IntArrayRef shape) { return device::random(shape, dtype); };
    const NormWeights weights{drawn({100}), drawn({100})};

    const NormedResidual both = operators.add_norm(drawn({3, 5, 100}), drawn({3, 5, 100}), weights);

    EXPECT_TRUE(torch::equal(operators.norm(both.residual_btc, weights), both.normed_btc));
  }
}

TEST_F(DeviceOperatorsTest, mlp_without_gradients_has_the_same_values) {
  Tensors inputs;
  for (const Tensor& input : mlp_inputs(2, 9, 16))
    inputs.push_back(input.to(tested_device(), at::kBFloat16).requires_grad_());
  for (const LaunchQueuePtr& queue : {tested_queue(), tested_queue_with_products()}) {
    DeviceOperators operators(queue);

    const Tensor with = kMlp(operators, inputs)[0];
    const torch::NoGradGuard no_grad;
    const Tensor without = kMlp(operators, inputs)[0];

    EXPECT_TRUE(torch::equal(with, without));
  }
}

void expect_gradients_where_asked(const LaunchQueuePtr& queue, at::ScalarType dtype) {
  Tensors inputs;
  for (const Tensor& input : mlp_inputs(2, 9, 16))
    inputs.push_back(input.to(tested_device(), dtype).requires_grad_());
  DeviceOperators own(queue), placed(queue);
  std::map<const void*, Tensor> places;
  placed.write_gradients_into({.lend = [&](const Tensor& weight) {
    const Tensor memory = torch::full_like(weight, 1e9);
    places[weight.data_ptr()] = memory;
    return at::alias(memory);
  }});
  const auto gradients = [&](Operators& operators) {
    for (Tensor& input : inputs) input.mutable_grad() = Tensor();
    const Tensor hidden = operators.linear(inputs[0], {inputs[1], inputs[2]});
    (kMlp(operators, inputs)[0].sum() + hidden.square().sum()).backward();
    return Tensors{inputs[1].grad(), inputs[3].grad()};
  };

  const Tensors expected = gradients(own);
  const Tensors found = gradients(placed);

  EXPECT_EQ(places.size(), 2);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(torch::equal(found[i], expected[i]));
  EXPECT_EQ(found[1].data_ptr(), places.at(inputs[3].data_ptr()).data_ptr());
}

TEST_F(DeviceOperatorsTest, gradients_of_weights_lie_where_they_are_asked_to) {
  expect_gradients_where_asked(tested_queue(), at::kFloat);
  expect_gradients_where_asked(tested_queue_with_products(), at::kBFloat16);
}

TEST_F(DeviceOperatorsTest, other_dtypes_are_plain) {
  DeviceOperators device(tested_queue());
  PlainOperators plain;
  Tensors inputs;
  for (const Tensor& input : mlp_inputs(1, 5, 8)) inputs.push_back(input.to(tested_device()));

  const Outcome found = run(device, kMlp, inputs), expected = run(plain, kMlp, inputs);

  EXPECT_TRUE(torch::equal(found.values[0], expected.values[0]));
}

TEST_F(DeviceOperatorsTest, results_do_not_depend_on_the_run) {
  DeviceOperators operators(tested_queue());
  const Tensor targets = ids(70, {2, 35});
  const Operation operation = [&](Operators& ops, const Tensors& in) -> Tensors {
    const NormedResidual mixed = ops.add_norm(in[0], kMlp(ops, in)[0], {in[5], in[6]});
    return {ops.next_token_loss(mixed.normed_btc,
                                {.tokens_vc = in[7], .positions_pc = {}, .tied = {}}, targets,
                                {.vocab_size = 70, .chunks = 2})};
  };
  Tensors inputs;
  Tensors shapes = mlp_inputs(2, 35, 32);
  shapes.insert(shapes.end(), {random({32}), random({32}), random({70, 32})});
  for (const Tensor& input : shapes) inputs.push_back(input.to(tested_device(), at::kBFloat16));

  const Outcome one = run(operators, operation, inputs), two = run(operators, operation, inputs);

  EXPECT_TRUE(torch::equal(one.values[0], two.values[0]));
  for (std::size_t i = 0; i < one.gradients.size(); ++i)
    EXPECT_TRUE(torch::equal(one.gradients[i], two.gradients[i])) << i;
}

}  // namespace
}  // namespace sidestream::model::device
