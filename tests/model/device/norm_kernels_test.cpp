// Layer norm's kernels against LibTorch's layer norm and its autograd in double.
#include "model/device/geometry.hpp"
#include "tests/model/device/near_tensors.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

struct Forward {
  Tensor sum, normed, statistics;
};

// branch may be undefined.
Forward forward(const Tensor& residual, const Tensor& branch, const Tensor& weight,
                const Tensor& bias) {
  const std::int64_t rows = residual.size(0);
  Forward out{branch.defined() ? at::empty_like(residual) : Tensor(), at::empty_like(residual),
              at::empty({2, rows}, residual.options().dtype(at::kFloat))};
  float* statistics = out.statistics.mutable_data_ptr<float>();
  tested_queue()->launch(&DeviceKernels::norm_forward,
                         {.dtype = dtype_of(residual),
                          .rows = rows,
                          .width = residual.size(1),
                          .residual = residual.const_data_ptr(),
                          .branch = branch.defined() ? branch.const_data_ptr() : nullptr,
                          .weight = weight.const_data_ptr(),
                          .bias = bias.const_data_ptr(),
                          .sum = branch.defined() ? out.sum.mutable_data_ptr() : nullptr,
                          .normed = out.normed.mutable_data_ptr(),
                          .mean = statistics,
                          .rstd = statistics + rows,
                          .eps = 1e-5f},
                         residual);
  return out;
}

struct Backward {
  Tensor x, weight, bias, x_sums;
};

// sum_grad may be undefined.
Backward backward(const Tensor& x, const Tensor& statistics, const Tensor& weight,
                  const Tensor& normed_grad, const Tensor& sum_grad) {
  const std::int64_t rows = x.size(0), width = x.size(1), parts = norm_parts(rows, width);
  const Tensor partial = at::full({3, parts, width}, 1e9, statistics.options());
  Backward out{at::empty_like(x), at::empty_like(weight), at::empty_like(weight),
               at::empty_like(weight)};
  const float* mean = statistics.const_data_ptr<float>();
  const auto queue = tested_queue();
  queue->launch(&DeviceKernels::norm_backward,
                {.dtype = dtype_of(x),
                 .rows = rows,
                 .width = width,
                 .x = x.const_data_ptr(),
                 .normed_grad = normed_grad.const_data_ptr(),
                 .sum_grad = sum_grad.defined() ? sum_grad.const_data_ptr() : nullptr,
                 .weight = weight.const_data_ptr(),
                 .mean = mean,
                 .rstd = mean + rows,
                 .x_grad = out.x.mutable_data_ptr(),
                 .partial = partial.mutable_data_ptr<float>()},
                x);
  queue->launch(&DeviceKernels::column_sums,
                {.dtype = dtype_of(x),
                 .partial = partial.const_data_ptr<float>(),
                 .parts = parts,
                 .width = width,
                 .first = out.weight.mutable_data_ptr(),
                 .second = out.bias.mutable_data_ptr(),
                 .third = out.x_sums.mutable_data_ptr()},
                x);
  return out;
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return at::layer_norm(x, {x.size(1)}, weight, bias, 1e-5);
}

struct Size {
  std::int64_t rows, width;
};

// Smaller than a warp, odd, whole chunks or not, one and several warps, eight to fifty-six floats a
// thread, and the last two: more rows than blocks, so that a block takes several, of one warp and
// of many.
constexpr Size kSizes[] = {{3, 1},    {2, 5},     {3, 8},       {5, 31},   {4, 64},
                           {3, 100},  {7, 384},   {5, 768},     {3, 776},  {2, 1030},
                           {4, 1280}, {2, 1281},  {2, 1408},    {2, 1600}, {2, 1792},
                           {3, 1800}, {2, 4096},  {2, 4104},    {1, 5001}, {2, 8192},
                           {2500, 8}, {1030, 24}, {1500, 1600}, {5300, 8}, {560, 4104}};
constexpr Size kManyRows[] = {*(std::end(kSizes) - 2), *(std::end(kSizes) - 1)};

struct NormKernelsTest : testing::TestWithParam<Size> {
  NormKernelsTest() { torch::manual_seed(11); }
  std::int64_t rows() const { return GetParam().rows; }
  std::int64_t width() const { return GetParam().width; }
};
INSTANTIATE_TEST_SUITE_P(Sizes, NormKernelsTest, testing::ValuesIn(kSizes), [](const auto& info) {
  return std::to_string(info.param.rows) + "x" + std::to_string(info.param.width);
});

TEST(NormSizesTest, the_last_sizes_have_more_rows_than_blocks) {
  for (const Size& size : kManyRows) {
    EXPECT_GT(size.rows, 2 * norm_blocks<NormPass::kForward>(size.rows, size.width));
    EXPECT_GT(size.rows, 2 * norm_parts(size.rows, size.width));
  }
}

TEST_P(NormKernelsTest, sum_is_rounded_once_and_its_norm_is_right) {
  for (const at::ScalarType dtype : kDtypes) {
    const Tensor residual = random({rows(), width()}, dtype, 2),
                 branch = random({rows(), width()}, dtype) + 0.5, weight = random({width()}, dtype),
                 bias = random({width()}, dtype);

    const Forward found = forward(residual, branch, weight, bias);

    EXPECT_TRUE(torch::equal(found.sum, residual + branch));
    expect_near(found.normed, layer_norm(wide(found.sum), wide(weight), wide(bias)), "normed");
    const Tensor x = wide(found.sum);
    expect_near(found.statistics[0], x.mean(1), "mean");
    expect_near(found.statistics[1], 1 / (x.var(1, /*unbiased=*/false) + 1e-5).sqrt(), "rstd");
  }
}

TEST_P(NormKernelsTest, backward_is_that_of_autograd) {
  for (const at::ScalarType dtype : kDtypes) {
    const auto of_rows = [&] { return random({rows(), width()}, dtype); };
    const Tensor x = of_rows() + 0.5, normed_grad = of_rows(), sum_grad = of_rows(),
                 weight = random({width()}, dtype), bias = random({width()}, dtype);
    const Tensor statistics = forward(x, {}, weight, bias).statistics;
    const Tensor x_leaf = wide(x).requires_grad_(), weight_leaf = wide(weight).requires_grad_(),
                 bias_leaf = wide(bias).requires_grad_();
    layer_norm(x_leaf, weight_leaf, bias_leaf).backward(wide(normed_grad));

    const Backward both = backward(x, statistics, weight, normed_grad, sum_grad);
    const Backward alone = backward(x, statistics, weight, normed_grad, {});

    expect_near(both.x, x_leaf.grad() + wide(sum_grad), "x, with the residual's gradient");
    if (width() > 1) {
      expect_near(alone.x, x_leaf.grad(), "x");
      expect_near(both.weight, weight_leaf.grad(), "weight");
    } else {  // a column is its own mean; in the oracle rounding is left
      EXPECT_EQ(alone.x.abs().max().item<double>(), 0);
      EXPECT_EQ(both.weight.abs().max().item<double>(), 0);
    }
    expect_near(both.bias, bias_leaf.grad(), "bias");
    EXPECT_TRUE(torch::equal(both.weight, alone.weight));
    if (rows() > 1)  // the sums of fewer are what rounding leaves of them
      expect_near(both.x_sums, (x_leaf.grad() + wide(sum_grad)).sum(0), "sums of x");
  }
}

// Rows that do not begin at 16 bytes go element by element, to the same threads in the same order.
TEST_P(NormKernelsTest, bits_do_not_depend_on_alignment) {
  for (const at::ScalarType dtype : kDtypes) {
    const auto of_rows = [&] { return random({rows(), width()}, dtype); };
    const Tensor residual = of_rows(), branch = of_rows(), normed_grad = of_rows(),
                 sum_grad = of_rows(), weight = random({width()}, dtype),
                 bias = random({width()}, dtype);

    const Forward one = forward(residual, branch, weight, bias);
    const Forward two = forward(shifted(residual), branch, shifted(weight), bias);
    const Backward first = backward(one.sum, one.statistics, weight, normed_grad, sum_grad);
    const Backward second =
        backward(two.sum, two.statistics, weight, shifted(normed_grad), sum_grad);

    EXPECT_TRUE(torch::equal(one.normed, two.normed));
    EXPECT_TRUE(torch::equal(one.statistics, two.statistics));
    EXPECT_TRUE(torch::equal(first.x, second.x));
    EXPECT_TRUE(torch::equal(first.weight, second.weight));
    EXPECT_TRUE(torch::equal(first.bias, second.bias));
    EXPECT_TRUE(torch::equal(first.x_sums, second.x_sums));
  }
}

struct NormRowsTest : testing::Test {
  NormRowsTest() { torch::manual_seed(12); }
};

TEST_F(NormRowsTest, variance_far_from_zero_is_not_lost) {
  const Tensor x = random({4, 768}, at::kFloat) + 1000, one = at::ones_like(x[0]),
               zero = at::zeros_like(one);

  const Tensor normed = forward(x, {}, one, zero).normed;

  // A number near 1000 has 6e-5 to its neighbour; a variance of squares minus square would be off
  // by 0.1.
  EXPECT_LT(relative_error(normed, layer_norm(wide(x), wide(one), wide(zero))), 1e-4);
}

TEST_F(NormRowsTest, equal_columns_have_no_spread_and_leave_the_bias) {
  const Tensor x = at::full({2, 100}, 3, random({1}, at::kFloat).options()),
               weight = random({100}, at::kFloat), bias = random({100}, at::kFloat);

  EXPECT_TRUE(torch::equal(forward(x, {}, weight, bias).normed, bias.expand({2, 100})));
}

TEST_F(NormRowsTest, squares_that_overflow_leave_the_bias) {
  const Tensor x = random({2, 64}, at::kFloat) * 1e25, one = at::ones_like(x[0]);

  const Tensor normed = forward(x, {}, one, one * 3).normed;

  EXPECT_TRUE(torch::equal(normed, at::full_like(x, 3)));
}

TEST_F(NormRowsTest, numbers_that_are_not_finite_stay_in_their_row) {
  Tensor x = random({3, 64}, at::kFloat);
  x[1][5] = std::numeric_limits<float>::infinity();
  const Tensor one = at::ones_like(x[0]);

  const Tensor normed = forward(x, {}, one, at::zeros_like(one)).normed;

  EXPECT_TRUE(normed[1].isnan().any().item<bool>());
  EXPECT_TRUE(normed[0].isfinite().all().item<bool>());
  EXPECT_TRUE(normed[2].isfinite().all().item<bool>());
}

}  // namespace
}  // namespace sidestream::model::device
