// Losses in chunks of rows against LibTorch's own on whole logits: values and gradients.
#include "model/chunked_loss.hpp"

#include <gtest/gtest.h>

#include "model/language_model.hpp"
#include "model/loss_chunks.hpp"
#include "model/plain_operators.hpp"
#include "tests/model/operator_outcome.hpp"

namespace sidestream::model {
namespace {

using torch::Tensor;

constexpr std::int64_t kRows = 33, kWidth = 16;

struct Sizes {
  std::int64_t vocab_size, padded;
};

struct LossOutcome {
  Tensor loss, x_grad, weight_grad;
};

Tensor random_targets(std::int64_t vocab_size) {
  torch::manual_seed(5);
  return torch::randint(vocab_size, {kRows}, torch::kLong);
}

// Loss and gradients of three times the loss.
template <typename Loss>
LossOutcome outcome_of(at::ScalarType dtype, const Sizes& sizes, const Loss& loss) {
  torch::manual_seed(6);
  const Tensor x = torch::randn({kRows, kWidth}, at::kDouble).to(dtype).requires_grad_(),
               weight =
                   torch::randn({sizes.padded, kWidth}, at::kDouble).to(dtype).requires_grad_();
  const Tensor value = loss(x, weight);
  (value * 3).backward();
  return {value, x.grad(), weight.grad()};
}

Tensor whole_loss(const Tensor& x, const Tensor& weight, const Tensor& targets,
                  std::int64_t vocab_size) {
  const Tensor logits = at::mm(x, weight.t()).narrow(1, 0, vocab_size);
  return at::cross_entropy_loss(x.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat),
                                targets);
}

void expect_near(const LossOutcome& found, const LossOutcome& expected, double tolerance) {
  EXPECT_LT(relative_error(found.loss, expected.loss), tolerance);
  EXPECT_LT(relative_error(found.x_grad, expected.x_grad), tolerance);
  EXPECT_LT(relative_error(found.weight_grad, expected.weight_grad), tolerance);
}

TEST(ChunkedLossTest, equals_the_loss_of_whole_logits) {
  for (const Sizes& sizes : {Sizes{50, 50}, Sizes{50, 64}}) {
    const Tensor targets = random_targets(sizes.vocab_size);
    const auto expected = [&](at::ScalarType dtype) {
      return outcome_of(dtype, sizes, [&](const Tensor& x, const Tensor& weight) {
        return whole_loss(x, weight, targets, sizes.vocab_size);
      });
    };
    for (const std::int64_t rows : {1, 2, 7, 16, 32, 33, 1000}) {
      SCOPED_TRACE(rows);
      const auto found = [&](at::ScalarType dtype) {
        return outcome_of(dtype, sizes, [&](const Tensor& x, const Tensor& weight) {
          return plain::chunked_loss(x, weight, targets, sizes.vocab_size, rows);
        });
      };
      expect_near(found(at::kDouble), expected(at::kDouble), 1e-13);
      expect_near(found(at::kFloat), expected(at::kFloat), 3e-6);
      expect_near(found(at::kBFloat16), expected(at::kBFloat16), 2e-2);
      EXPECT_EQ(found(at::kBFloat16).loss.scalar_type(), at::kFloat);
      if (sizes.padded > sizes.vocab_size) {
        const Tensor padding =
            found(at::kFloat)
                .weight_grad.narrow(0, sizes.vocab_size, sizes.padded - sizes.vocab_size);
        EXPECT_EQ(padding.abs().max().item<double>(), 0);
      }
    }
  }
}

TEST(ChunkedLossTest, targets_that_do_not_count_are_left_out_of_the_mean) {
  Tensor targets = random_targets(50);
  targets.narrow(0, 3, 9).fill_(-100);
  const Sizes sizes{50, 50};

  const LossOutcome expected =
      outcome_of(at::kDouble, sizes,
                 [&](const Tensor& x, const Tensor& w) { return whole_loss(x, w, targets, 50); });
  const LossOutcome found = outcome_of(at::kDouble, sizes, [&](const Tensor& x, const Tensor& w) {
    return plain::chunked_loss(x, w, targets, 50, 4);  // one chunk has no target that counts
  });

  expect_near(found, expected, 1e-13);
}

// In bf16 a chunk a row would leave as many roundings of the sum as there are rows.
TEST(ChunkedLossTest, bf16_sums_of_chunks_are_rounded_once) {
  constexpr std::int64_t kManyRows = 256;
  constexpr double kRounding = 1.0 / 512;  // half of a last bit
  torch::manual_seed(5);
  const Tensor targets = torch::randint(7, {kManyRows}, torch::kLong),
               x = torch::randn({kManyRows, kWidth}).to(at::kBFloat16);
  const auto gradient = [&](std::int64_t rows) {
    torch::manual_seed(6);
    const Tensor weight = torch::randn({50, kWidth}).to(at::kBFloat16).requires_grad_();
    plain::chunked_loss(x, weight, targets, 50, rows).backward();
    return weight.grad();
  };

  EXPECT_LT(relative_error(gradient(1), gradient(kManyRows)), 1.5 * kRounding)
      << "each chunk's product is rounded, and the sum";
}

TEST(ChunkedLossTest, refuses_a_target_outside) {
  const Tensor targets = torch::full({kRows}, 50, torch::kLong);

  EXPECT_THROW(plain::chunked_loss(torch::zeros({kRows, kWidth}), torch::zeros({64, kWidth}),
                                   targets, 50, 7),
               c10::Error);
}

TEST(ChunkedLossTest, a_second_backward_is_refused) {
  const Tensor x = torch::randn({kRows, kWidth}).requires_grad_(), w = torch::randn({50, kWidth});
  const Tensor loss = plain::chunked_loss(x, w, random_targets(50), 50, 7);
  loss.backward({}, /*retain_graph=*/true);

  EXPECT_THROW(loss.backward(), c10::Error);
}

// The gradient that comes is what was expected, or a multiple of it.
TEST(ChunkedLossTest, knows_its_scale_before_the_gradient_comes) {
  const Tensor targets = random_targets(50), scale = torch::full({}, 1024.0f);
  const auto gradient = [&](const Tensor& expected, const Tensor& given) {
    torch::manual_seed(6);
    const Tensor x = torch::randn({kRows, kWidth}), w = torch::randn({50, kWidth}).requires_grad_();
    plain::chunked_loss(x, w, targets, 50, 7, expected).backward(given);
    return w.grad();
  };
  const Tensor exact = gradient({}, {}) * 1024;

  EXPECT_TRUE(torch::equal(gradient(scale, scale), exact));
  EXPECT_TRUE(torch::equal(gradient(scale, scale * 4), exact * 4));
  EXPECT_TRUE(torch::equal(gradient(scale, {}), exact / 1024));
}

// Of 32768 rows each has a gradient of some 1e-7, of which fp16 has two steps.
TEST(ChunkedLossTest, keeps_small_gradients_of_fp16_by_its_scale) {
  torch::manual_seed(5);
  const Tensor x = (torch::randn({32768, kWidth}) * 0.5).to(at::kHalf),
               w = (torch::randn({256, kWidth}) * 0.5).to(at::kHalf),
               targets = torch::randint(256, {32768}, torch::kLong),
               scale = torch::full({}, 65536.0f);
  const auto gradient = [&](at::ScalarType dtype, const Tensor& known) {
    const Tensor leaf = x.to(dtype).detach().requires_grad_();
    plain::chunked_loss(leaf, w.to(dtype), targets, 256, 4096, known).backward(known);
    return leaf.grad().to(at::kDouble);
  };
  const Tensor exact = gradient(at::kDouble, {});

  EXPECT_LT(relative_error(gradient(at::kHalf, scale) / 65536, exact), 2e-3);
  EXPECT_GT(relative_error(gradient(at::kHalf, {}), exact), 5e-3) << "without it";
}

TEST(ChunkedLossTest, without_gradients_has_the_same_value) {
  const torch::NoGradGuard no_grad;
  const Tensor x = torch::randn({kRows, kWidth}).requires_grad_(),
               w = torch::randn({50, kWidth}).requires_grad_(), targets = random_targets(50);

  const Tensor loss = plain::chunked_loss(x, w, targets, 50, 7);

  EXPECT_FALSE(loss.requires_grad());
  EXPECT_NEAR(loss.item<double>(), whole_loss(x, w, targets, 50).item<double>(), 1e-5);
}

TEST(ChunkedLossTest, one_chunk_of_the_plain_operators_is_whole_logits_bit_for_bit) {
  const Tensor targets = random_targets(50);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto through = [&](std::int64_t chunks) {
      return outcome_of(dtype, {50, 64}, [&](const Tensor& x, const Tensor& weight) {
        PlainOperators operators;
        return operators.next_token_loss(
            x.view({3, 11, kWidth}), {.tokens_vc = weight, .positions_pc = {}, .tied = {}},
            targets.view({3, 11}), {.vocab_size = 50, .chunks = chunks});
      });
    };
    const LossOutcome expected = outcome_of(dtype, {50, 64}, [&](const Tensor& x, const Tensor& w) {
      return whole_loss(x, w, targets, 50);
    });

    for (const std::int64_t chunks : {1, 0}) {  // so few logits fit: auto is one chunk
      const LossOutcome found = through(chunks);
      EXPECT_TRUE(torch::equal(found.loss, expected.loss));
      EXPECT_TRUE(torch::equal(found.x_grad, expected.x_grad));
      EXPECT_TRUE(torch::equal(found.weight_grad, expected.weight_grad));
    }
    expect_near(through(5), expected, dtype == at::kFloat ? 3e-6 : 2e-2);
    expect_near(through(1000), expected, dtype == at::kFloat ? 3e-6 : 2e-2);
  }
}

// Through a whole model: the tied weight has the sum of both gradients.
TEST(ChunkedLossTest, chunks_leave_loss_and_gradients_of_a_model_near) {
  for (const char* name : {"gpt2-micro", "mlp"}) {
    const auto model_with = [&](std::int64_t chunks) {
      ModelConfig config = preset(name);
      config.fused_ops = FusedOps::kOff;
      config.loss_chunks = chunks;
      auto model = make_language_model(config);
      model->initialise(1);
      return model;
    };
    torch::manual_seed(2);
    const Tensor x = torch::randint(512, {2, 17}, torch::kLong),
                 y = torch::randint(512, {2, 17}, torch::kLong);
    const auto whole = model_with(1), chunked = model_with(4);

    const Tensor expected = whole->loss(x, y), found = chunked->loss(x, y);
    expected.backward();
    found.backward();

    EXPECT_NEAR(found.item<double>(), expected.item<double>(), 1e-6);
    for (const auto& item : chunked->named_parameters()) {
      EXPECT_LT(relative_error(item.value().grad(), whole->named_parameters()[item.key()].grad()),
                1e-5)
          << item.key();
    }
  }
}

TEST(LossChunksTest, rows_of_a_chunk_follow_the_documented_rule) {
  const LossRows loss{.rows = 100, .bytes_per_row = 4};
  EXPECT_EQ(rows_of_loss_chunk(loss, 1), 100);
  EXPECT_EQ(rows_of_loss_chunk(loss, 3), 34);
  EXPECT_EQ(rows_of_loss_chunk(loss, 100), 1);
  EXPECT_EQ(rows_of_loss_chunk(loss, 1000), 1) << "more chunks than rows";
  EXPECT_EQ(rows_of_loss_chunk(loss, 0), 100) << "all fit";

  const LossRows large{.rows = 4096, .bytes_per_row = 4 * 50304};
  const std::int64_t rows = rows_of_loss_chunk(large, 0);
  EXPECT_EQ(rows % 64, 0);
  EXPECT_LE(rows * large.bytes_per_row, kLossChunkBytes);
  EXPECT_GT((rows + 64) * large.bytes_per_row, kLossChunkBytes);
  EXPECT_EQ(rows_of_loss_chunk({.rows = 4096, .bytes_per_row = std::int64_t{1} << 40}, 0), 64);
}

}  // namespace
}  // namespace sidestream::model
