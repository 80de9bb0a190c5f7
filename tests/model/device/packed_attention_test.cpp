// Attention of packed operands with its autograd against LibTorch's.
#include "tests/model/device/compared_operators.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

struct PackedAttentionTest : testing::Test {
  PackedAttentionTest() { torch::manual_seed(3); }
};

Operation attention_of(std::int64_t heads, double dropout = 0) {
  return [=](Operators& ops, const Tensors& in) -> Tensors {
    return {ops.attention(in[0], {.heads = heads, .dropout = dropout})};
  };
}

struct Sizes {
  std::int64_t batch, time, heads, head_width;

  Tensor draw(double scale = 1) const {
    return device::random({batch, time, 3 * heads * head_width}, scale);
  }
  Tensor draw(at::ScalarType dtype) const { return draw().to(tested_device(), dtype); }
};

TEST_F(PackedAttentionTest, equals_plain) {
  const LaunchQueuePtr queue = tested_queue_with_packed_attention();
  for (const Sizes& s :
       {Sizes{2, 64, 3, 64}, {1, 2, 1, 8}, {3, 37, 2, 16}, {2, 130, 2, 128}, {1, 257, 5, 40}}) {
    SCOPED_TRACE(s.time);
    compare(attention_of(s.heads), {s.draw()}, queue);
  }
}

TEST_F(PackedAttentionTest, is_right_with_large_scores) {
  compare(attention_of(2), {Sizes{2, 50, 2, 32}.draw(/*scale=*/3)},
          tested_queue_with_packed_attention());
}

TEST_F(PackedAttentionTest, takes_operands_and_gradients_that_do_not_lie_side_by_side) {
  const Operation operation = [](Operators& ops, const Tensors& in) -> Tensors {
    const Tensor out = ops.attention(in[0].transpose(0, 1), {.heads = 2, .dropout = 0});
    return {out.transpose(1, 2).narrow(1, 0, 16)};
  };
  compare(operation, {Sizes{20, 3, 2, 16}.draw()}, tested_queue_with_packed_attention());
}

TEST_F(PackedAttentionTest, takes_operands_at_any_place) {
  DeviceOperators operators(tested_queue_with_packed_attention());
  const Tensor qkv = Sizes{2, 20, 2, 16}.draw(at::kBFloat16);

  const Tensor expected = attention_of(2)(operators, {qkv})[0];

  EXPECT_TRUE(torch::equal(attention_of(2)(operators, {shifted(qkv)})[0], expected));
}

TEST_F(PackedAttentionTest, parts_begin_where_their_columns_do) {
  const Tensor packed = at::empty({2, 5, 24}, at::kHalf);
  for (const std::int64_t i : {0, 1, 2})
    EXPECT_EQ(part_of(packed, i, 3), packed.narrow(2, 8 * i, 8).data_ptr());
}

// Passes on to another, and counts.
class CountedAttention : public PackedAttention {
 public:
  explicit CountedAttention(std::shared_ptr<const PackedAttention> other)
      : other_(std::move(other)) {}

  std::string objection(const Sizes& sizes) const override { return other_->objection(sizes); }
  void forward(const Forward& job) const override {
    ++forwards;
    other_->forward(job);
  }
  void backward(const Backward& job) const override {
    ++backwards;
    other_->backward(job);
  }

  mutable int forwards = 0, backwards = 0;

 private:
  std::shared_ptr<const PackedAttention> other_;
};

TEST_F(PackedAttentionTest, is_used_in_16_bits_without_dropout_where_heads_fit) {
  const LaunchQueuePtr queue = tested_queue_with_packed_attention();
  const auto counted = std::make_shared<CountedAttention>(queue->attention);
  queue->attention = counted;
  DeviceOperators operators(queue);
  const auto counts = [&](const Sizes& sizes, at::ScalarType dtype, double dropout = 0) {
    counted->forwards = counted->backwards = 0;
    const Tensor qkv = sizes.draw(dtype).requires_grad_();
    attention_of(sizes.heads, dropout)(operators, {qkv})[0].sum().backward();
    return std::pair(counted->forwards, counted->backwards);
  };
  const std::pair used(1, 1), not_used(0, 0);

  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    EXPECT_EQ(counts({2, 5, 2, 16}, dtype), used);
    EXPECT_EQ(counts({2, 5, 2, 128}, dtype), used);
    EXPECT_EQ(counts({2, 5, 2, 12}, dtype), not_used);
    EXPECT_EQ(counts({2, 5, 1, 136}, dtype), not_used);
    EXPECT_EQ(counts({2, 1, 2, 16}, dtype), not_used);
    EXPECT_EQ(counts({2, 5, 2, 16}, dtype, /*dropout=*/0.5), not_used);
  }
  EXPECT_EQ(counts({2, 5, 2, 16}, at::kFloat), not_used);
}

TEST_F(PackedAttentionTest, without_gradients_has_the_same_values) {
  DeviceOperators operators(tested_queue_with_packed_attention());
  const Tensor qkv = Sizes{2, 70, 2, 64}.draw(at::kBFloat16).requires_grad_();

  const Tensor with = attention_of(2)(operators, {qkv})[0];
  const torch::NoGradGuard no_grad;
  const Tensor without = attention_of(2)(operators, {qkv})[0];

  EXPECT_TRUE(torch::equal(with, without));
}

struct Deterministic {
  Deterministic() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true); }
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false); }
};

TEST_F(PackedAttentionTest, gradients_are_the_same_bits_in_every_run_where_that_is_asked_for) {
  const Deterministic guard;
  DeviceOperators operators(tested_queue_with_packed_attention());
  const Tensors inputs{Sizes{4, 1024, 4, 64}.draw(at::kBFloat16)};

  const Outcome one = run(operators, attention_of(4), inputs);
  for (int repeat = 0; repeat < 5; ++repeat) {
    const Outcome other = run(operators, attention_of(4), inputs);
    EXPECT_TRUE(torch::equal(one.gradients[0], other.gradients[0]));
  }
}

}  // namespace
}  // namespace sidestream::model::device
