// The kernel of softmax cross-entropy against log_softmax in double.
#include "model/ignored_target.hpp"
#include "tests/model/device/near_tensors.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Result {
  Tensor losses, gradient;  // gradient [rows, stride]
};

Result run(const Tensor& logits, const Tensor& targets, std::int64_t vocab_size, double scale) {
  Result result{at::full({logits.size(0)}, 1e9, logits.options().dtype(at::kFloat)),
                logits.clone()};
  const Tensor on_device = targets.to(logits.device());
  tested_queue()->launch(&DeviceKernels::cross_entropy,
                         {.dtype = dtype_of(logits),
                          .rows = logits.size(0),
                          .stride = logits.size(1),
                          .vocab_size = vocab_size,
                          .logits = result.gradient.mutable_data_ptr(),
                          .targets = on_device.const_data_ptr<std::int64_t>(),
                          .losses = result.losses.mutable_data_ptr<float>(),
                          .gradient_scale = static_cast<float>(scale)},
                         logits);
  return result;
}

// Padding holds what no loss may see.
Tensor padded(const Tensor& logits, std::int64_t padding_strides = 0) {
  const std::int64_t stride =
      ((logits.size(1) + kLogitStride - 1) / kLogitStride + padding_strides) * kLogitStride;
  Tensor out = at::full({logits.size(0), stride}, std::nan(""), logits.options());
  out.narrow(1, 0, logits.size(1)).copy_(logits);
  return out;
}

void expect_right(const Tensor& logits, const Tensor& targets, std::int64_t padding_strides = 0) {
  const std::int64_t vocab_size = logits.size(1);
  const double scale = 0.125;
  const Tensor rows = at::arange(logits.size(0)), log_p = at::log_softmax(wide(logits), 1);
  const Tensor losses = -log_p.index({rows, targets});
  Tensor gradient = log_p.exp();
  gradient.index_put_({rows, targets}, gradient.index({rows, targets}) - 1);

  const Result found = run(padded(logits, padding_strides), targets, vocab_size, scale);

  EXPECT_LT(relative_error(found.losses, losses), 3e-6) << "losses";
  expect_near(found.gradient.narrow(1, 0, vocab_size), gradient * scale, "gradient");
  EXPECT_EQ(wide(found.gradient).slice(1, vocab_size).abs().sum().item<double>(), 0) << "padding";
}

Tensor targets_of(const Tensor& logits) {
  return torch::randint(logits.size(1), {logits.size(0)}, torch::kLong);
}

struct CrossEntropyKernelTest : testing::Test {
  CrossEntropyKernelTest() { torch::manual_seed(13); }
};

TEST_F(CrossEntropyKernelTest, loss_and_gradient_of_any_vocabulary) {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t vocab_size : {2, 7, 61, 64, 65, 512, 1009, 9000}) {
      SCOPED_TRACE(vocab_size);
      const Tensor logits = random({5, vocab_size}, dtype, 3);
      expect_right(logits, targets_of(logits));
      expect_right(logits, targets_of(logits), /*padding_strides=*/2);
    }
    const Tensor logits = random({2, 50257}, dtype, 3);
    expect_right(logits, targets_of(logits));
  }
}

// A block goes through several of them, each of which arrives while the one before it leaves.
TEST_F(CrossEntropyKernelTest, more_rows_than_a_gpu_has_blocks) {
  for (const at::ScalarType dtype : kDtypes) {
    const Tensor logits = random({9000, 70}, dtype, 3);
    expect_right(logits, targets_of(logits), /*padding_strides=*/1);
  }
  const Tensor logits = random({300, 4100}, at::kBFloat16, 3);
  expect_right(logits, targets_of(logits));
}

TEST_F(CrossEntropyKernelTest, one_column_is_certain) {
  const Tensor logits = random({3, 1}, at::kFloat, 5);

  const Result found = run(padded(logits), targets_of(logits), 1, 1);

  EXPECT_EQ(found.losses.abs().sum().item<double>(), 0);
  EXPECT_EQ(found.gradient.abs().sum().item<double>(), 0);
}

TEST_F(CrossEntropyKernelTest, large_logits_do_not_overflow) {
  for (const at::ScalarType dtype : kDtypes) {
    for (const double scale : {50.0, 1e4, 1e30}) {
      SCOPED_TRACE(scale);
      if (dtype == at::kHalf && scale > 1e4) continue;  // fp16 has no such numbers
      const Tensor logits = random({4, 700}, dtype, scale);
      expect_right(logits, targets_of(logits));
    }
    // As large as each other, so that all of them count.
    const Tensor logits = random({4, 700}, dtype) + 1024;
    expect_right(logits, targets_of(logits));
    expect_right(-logits, targets_of(logits));
  }
}

TEST_F(CrossEntropyKernelTest, masked_columns_have_no_probability) {
  for (const at::ScalarType dtype : kDtypes) {
    Tensor logits = random({4, 300}, dtype);
    logits.narrow(1, 0, 128).fill_(-kInfinity);  // all that the first threads see
    logits.narrow(1, 200, 3).fill_(-kInfinity);
    expect_right(logits, torch::randint(203, 300, {4}, torch::kLong));
  }
}

TEST_F(CrossEntropyKernelTest, certainty_right_and_wrong) {
  for (const at::ScalarType dtype : kDtypes) {
    Tensor logits = at::full({2, 100}, -1e4, random({1}, dtype).options());
    logits.select(1, 7).fill_(1e4);

    const Result found = run(padded(logits), torch::tensor({7, 8}, torch::kLong), 100, 0.5);

    EXPECT_EQ(found.losses[0].item<double>(), 0);
    EXPECT_EQ(found.gradient[0].abs().sum().item<double>(), 0);
    EXPECT_NEAR(found.losses[1].item<double>(), 2e4, 2e4 * 0.004);  // 1e4 as bf16
    EXPECT_EQ(found.gradient[1][7].item<double>(), 0.5);
    EXPECT_EQ(found.gradient[1][8].item<double>(), -0.5);
  }
}

TEST_F(CrossEntropyKernelTest, impossible_target_has_infinite_loss_and_finite_gradient) {
  Tensor logits = random({1, 40}, at::kFloat);
  logits[0][3] = -kInfinity;

  const Result found = run(padded(logits), torch::tensor({3}, torch::kLong), 40, 1);

  EXPECT_EQ(found.losses[0].item<double>(), kInfinity);
  EXPECT_EQ(found.gradient[0][3].item<double>(), -1);
  EXPECT_TRUE(found.gradient.isfinite().all().item<bool>());
}

TEST_F(CrossEntropyKernelTest, what_is_not_finite_makes_its_row_nan_and_no_other) {
  for (const double bad : {std::nan(""), kInfinity}) {
    Tensor logits = random({3, 500}, at::kFloat);
    logits[1][77] = bad;
    logits.select(0, 1).narrow(0, 78, 200).fill_(-kInfinity);
    const Tensor targets = targets_of(logits);

    const Result found = run(padded(logits), targets, 500, 1);

    EXPECT_TRUE(found.losses[1].isnan().item<bool>());
    EXPECT_TRUE(found.losses[0].isfinite().item<bool>());
    EXPECT_TRUE(found.losses[2].isfinite().item<bool>());
    EXPECT_TRUE(found.gradient[2].isfinite().all().item<bool>());
  }
  const Tensor nothing = at::full({1, 64}, -kInfinity, random({1}, at::kFloat).options());
  EXPECT_TRUE(run(nothing, torch::tensor({3}, torch::kLong), 64, 1).losses.isnan().item<bool>());
}

TEST_F(CrossEntropyKernelTest, targets_outside_make_loss_and_gradient_nan) {
  for (const std::int64_t outside : {-1, -99, 61, 64, 1 << 30}) {
    const Tensor logits = random({2, 61}, at::kFloat);

    const Result found = run(padded(logits), torch::tensor({outside, std::int64_t{5}}), 61, 1);

    EXPECT_TRUE(found.losses[0].isnan().item<bool>());
    EXPECT_TRUE(found.gradient[0].narrow(0, 0, 61).isnan().all().item<bool>());
    EXPECT_TRUE(found.losses[1].isfinite().item<bool>());
    EXPECT_TRUE(found.gradient[1].isfinite().all().item<bool>());
  }
}

TEST_F(CrossEntropyKernelTest, targets_that_do_not_count_have_no_loss_and_no_gradient) {
  for (const double logit : {0.0, 1e30, std::nan("")}) {
    Tensor logits = random({2, 61}, at::kFloat);
    logits.select(0, 0).fill_(logit);

    const Result found =
        run(padded(logits), torch::tensor({kIgnoredTarget, std::int64_t{5}}), 61, 1);

    EXPECT_EQ(found.losses[0].item<double>(), 0);
    EXPECT_EQ(found.gradient[0].abs().sum().item<double>(), 0);
    EXPECT_GT(found.losses[1].item<double>(), 0);
    EXPECT_GT(found.gradient[1].abs().sum().item<double>(), 0);
  }
}

TEST_F(CrossEntropyKernelTest, without_gradient_logits_stay_as_they_are) {
  const Tensor logits = random({3, 128}, at::kBFloat16),
               targets = torch::randint(100, {3}, torch::kLong);

  const Result with = run(logits, targets, 100, 1), without = run(logits, targets, 100, 0);

  EXPECT_TRUE(torch::equal(without.gradient, logits));
  EXPECT_TRUE(torch::equal(without.losses, with.losses));
}

}  // namespace
}  // namespace sidestream::model::device
