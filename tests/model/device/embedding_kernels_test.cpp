// Embedding rows and their gradients against LibTorch's operators in double.
#include "model/device/embedding_tiles.hpp"
#include "tests/model/device/compared_operators.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

struct EmbeddingKernelsTest : testing::Test {
  EmbeddingKernelsTest() { torch::manual_seed(21); }
};

Operation embed(const Tensor& tokens_bt, bool has_positions) {
  return [=](Operators& ops, const Tensors& in) -> Tensors {
    return {ops.embed(
        tokens_bt,
        {.tokens_vc = in[0], .positions_pc = has_positions ? in[1] : Tensor(), .tied = {}})};
  };
}

TEST_F(EmbeddingKernelsTest, embed_equals_plain) {
  struct Sizes {
    std::int64_t batch, time, width, vocabulary, positions;
  };
  for (const Sizes& s : {Sizes{1, 1, 1, 1, 1},
                         {3, 100, 33, 7, 100},
                         {2, 65, 1032, 300, 70},
                         {19, 5, 64, 5000, 1024},
                         {9, 300, 8, 3, 300}}) {
    SCOPED_TRACE(s.width);
    const Tensor tokens = ids(s.vocabulary, {s.batch, s.time});
    const Tensors inputs = {random({s.vocabulary, s.width}), random({s.positions, s.width})};
    compare(embed(tokens, true), inputs);
    compare(embed(tokens, false), {inputs[0]});
  }
}

// Numbers of places of one token after another, of tiles of 32: none goes on, all do, some end
// where a tile does, some begin and end in the midst of one.
TEST_F(EmbeddingKernelsTest, a_token_has_all_of_its_gradient_wherever_its_places_lie) {
  for (const std::vector<std::int64_t>& groups : {std::vector<std::int64_t>{1},
                                                  {32, 32},
                                                  {33},
                                                  {31, 2, 31},
                                                  {5, 1000},
                                                  {1000, 5},
                                                  {10, 65, 1, 1, 32, 19},
                                                  {16, 16, 16, 700, 3}}) {
    std::vector<std::int64_t> tokens;
    for (std::size_t id = 0; id < groups.size(); ++id)
      tokens.insert(tokens.end(), static_cast<std::size_t>(groups[id]), std::ssize(groups) - id);
    const Tensor in_order = torch::tensor(tokens, torch::kLong);
    const Tensor mixed = in_order.index({torch::randperm(in_order.numel())});
    for (const Tensor& one : {in_order, mixed}) {
      SCOPED_TRACE(testing::PrintToString(groups));
      compare(embed(one.view({1, -1}).to(tested_device()), false), {random({10, 24})});
      compare(embed(one.view({1, -1}).to(tested_device()), false), {random({10, 1032})});
    }
  }
}

// ids: ascending.
Tensor token_gradients(const Tensor& gradients, const Tensor& ids, const Tensor& before) {
  const Tensor target = before.clone(), small_ids = ids.to(at::kInt),
               order = at::arange(ids.numel(), ids.options()),
               pieces = at::full({token_tiles(ids.numel()), 2, gradients.size(1)}, std::nan(""),
                                 gradients.options().dtype(at::kFloat));
  tested_queue()->launch(&DeviceKernels::token_gradients,
                         {.dtype = dtype_of(gradients),
                          .count = ids.numel(),
                          .vocabulary = target.size(0),
                          .width = gradients.size(1),
                          .gradients = gradients.const_data_ptr(),
                          .ids = small_ids.const_data_ptr<std::int32_t>(),
                          .order = order.const_data_ptr<std::int64_t>(),
                          .pieces = pieces.mutable_data_ptr<float>(),
                          .target = target.mutable_data_ptr()},
                         gradients);
  return target;
}

TEST_F(EmbeddingKernelsTest, token_gradients_are_added_to_what_is_there) {
  for (const at::ScalarType dtype : kDtypes) {
    const Tensor gradients = device::random({300, 40}, dtype),
                 before = device::random({9, 40}, dtype),
                 tokens = std::get<0>(at::sort(ids(9, {300})));

    const Tensor found = token_gradients(gradients, tokens, before);

    expect_near(found, wide(before).index_add(0, tokens.cpu(), wide(gradients)), "rows");
    EXPECT_TRUE(torch::equal(token_gradients(shifted(gradients), tokens, before), found))
        << "not at 16 bytes";
  }
}

// Without atomics, and with more places than LibTorch's sort has a small path for (4096).
TEST_F(EmbeddingKernelsTest, many_places_give_the_same_bits_in_every_run) {
  const Tensor tokens = ids(3, {6, 1000});
  const Tensors inputs = {device::random({3, 8}, at::kBFloat16),
                          device::random({1000, 8}, at::kBFloat16)};
  DeviceOperators operators(tested_queue());

  const Outcome one = run(operators, embed(tokens, true), inputs),
                two = run(operators, embed(tokens, true), inputs);

  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(torch::equal(one.gradients[i], two.gradients[i])) << i;
  compare(embed(tokens, true), {random({3, 8}), random({1000, 8})});
}

TEST_F(EmbeddingKernelsTest, a_frozen_table_gets_no_gradient_and_the_other_does) {
  DeviceOperators operators(tested_queue());
  const Tensor tokens = ids(5, {2, 3});
  for (const bool freeze_tokens : {true, false}) {
    const Tensor rows = device::random({5, 8}, at::kFloat).requires_grad_(!freeze_tokens),
                 positions = device::random({4, 8}, at::kFloat).requires_grad_(freeze_tokens);

    operators.embed(tokens, {.tokens_vc = rows, .positions_pc = positions, .tied = {}})
        .sum()
        .backward();

    EXPECT_EQ(rows.grad().defined(), !freeze_tokens);
    EXPECT_EQ(positions.grad().defined(), freeze_tokens);
  }
}

TEST_F(EmbeddingKernelsTest, what_does_not_go_together_is_refused) {
  DeviceOperators operators(tested_queue());
  const auto embedded = [&](const Tensor& tokens, const Tensor& positions) {
    return operators.embed(
        tokens,
        {.tokens_vc = device::random({5, 8}, at::kFloat), .positions_pc = positions, .tied = {}});
  };
  const Tensor tokens = ids(5, {2, 3});

  EXPECT_NO_THROW(embedded(tokens, device::random({3, 8}, at::kFloat)));
  EXPECT_THROW(embedded(tokens.to(at::kInt), {}), c10::Error);
  EXPECT_THROW(embedded(tokens.view({-1}), {}), c10::Error);
  EXPECT_THROW(embedded(tokens, device::random({2, 8}, at::kFloat)), c10::Error);
  EXPECT_THROW(embedded(tokens, device::random({3, 16}, at::kFloat)), c10::Error);
  EXPECT_THROW(embedded(tokens, device::random({3, 8}, at::kHalf)), c10::Error);
}

TEST_F(EmbeddingKernelsTest, tokens_outside_the_vocabulary_are_nan_and_get_no_gradient) {
  DeviceOperators operators(tested_queue());
  const Tensor tokens =
      torch::tensor({{-1L, 0L, 3L}, {0L, 2L, (1L << 32) + 1}}, torch::kLong).to(tested_device());
  const Tensor weight = device::random({3, 8}, at::kFloat).requires_grad_();

  const Tensor out = operators.embed(tokens, {.tokens_vc = weight, .positions_pc = {}, .tied = {}});
  out.sum().backward();

  const Tensor is_outside = torch::tensor({{true, false, true}, {false, false, true}});
  EXPECT_TRUE(torch::equal(out.isnan().all(2).cpu(), is_outside));
  EXPECT_TRUE(torch::equal(out.isnan().any(2).cpu(), is_outside));
  const Tensor places = torch::tensor({2.0, 0.0, 1.0}).view({3, 1});
  EXPECT_TRUE(torch::equal(weight.grad().cpu(), places.expand({3, 8}).to(at::kFloat)));
}

}  // namespace
}  // namespace sidestream::model::device
