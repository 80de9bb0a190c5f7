// GELU's kernels, and the sums over rows, against LibTorch in double.
#include "model/device/geometry.hpp"
#include "tests/model/device/near_tensors.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

void gelu(const Tensor& before, const Tensor& activation) {
  tested_queue()->launch(&DeviceKernels::gelu_forward,
                         {.dtype = dtype_of(before),
                          .count = before.numel(),
                          .before = before.const_data_ptr(),
                          .activation = activation.mutable_data_ptr()},
                         before);
}

struct GeluGradients {
  Tensor before, activation, bias;
};

GeluGradients backward(const Tensor& before, const Tensor& grad) {
  const std::int64_t rows = before.size(0), width = before.size(1), parts = row_parts(rows, width);
  GeluGradients out{grad, at::empty_like(before), at::empty({width}, before.options())};
  const Tensor partial = at::full({parts, width}, 1e9, before.options().dtype(at::kFloat));
  const auto queue = tested_queue();
  queue->launch(&DeviceKernels::gelu_backward,
                {.dtype = dtype_of(before),
                 .rows = rows,
                 .width = width,
                 .before = before.const_data_ptr(),
                 .gradient = out.before.mutable_data_ptr(),
                 .activation = out.activation.mutable_data_ptr(),
                 .bias_partial = partial.mutable_data_ptr<float>()},
                before);
  queue->launch(&DeviceKernels::column_sums,
                {.dtype = dtype_of(before),
                 .partial = partial.const_data_ptr<float>(),
                 .parts = parts,
                 .width = width,
                 .first = out.bias.mutable_data_ptr(),
                 .second = nullptr,
                 .third = nullptr},
                before);
  return out;
}

struct GeluKernelsTest : testing::Test {
  GeluKernelsTest() { torch::manual_seed(14); }
};

TEST_F(GeluKernelsTest, values_are_right_whatever_their_number) {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t count : {1, 7, 8, 9, 1000, 4099}) {
      SCOPED_TRACE(count);
      const Tensor before = random({count}, dtype, 3);
      const Tensor expected = at::gelu(wide(before), "tanh");
      const Tensor activation = at::empty_like(before);

      gelu(before, activation);
      expect_near(activation, expected, "values");

      const Tensor apart = shifted(before);
      gelu(apart, apart);
      EXPECT_TRUE(torch::equal(apart, activation)) << "in place, and not at 16 bytes";
    }
  }
}

TEST_F(GeluKernelsTest, each_value_is_right_far_from_zero) {
  const Tensor before = torch::linspace(-30, 30, 601).to(tested_device(), at::kFloat);
  const Tensor activation = at::empty_like(before);

  gelu(before, activation);

  const Tensor expected = at::gelu(wide(before), "tanh");
  // Below -6 the exponent, a hundred and more, is rounded; double says 0 where fp32 still has
  // 1e-38.
  const Tensor allowed = expected.abs() * 3e-5 + 1e-12;
  EXPECT_TRUE(((wide(activation) - expected).abs() <= allowed).all().item<bool>());
  for (const double far : {1e4, -1e4, 1e18, -1e18}) {
    const Tensor one = at::full({1}, far, before.options());
    gelu(one, one);
    EXPECT_EQ(one.item<double>(), far > 0 ? static_cast<float>(far) : 0.0);
  }
}

TEST_F(GeluKernelsTest, backward_is_that_of_autograd) {
  struct Size {
    std::int64_t rows, width;
  };
  for (const at::ScalarType dtype : kDtypes) {
    for (const Size& s : {Size{1, 1},
                          {3, 7},
                          {5, 8},
                          {300, 64},
                          {4, 1000},
                          {513, 33},
                          {3, 1032},
                          {2, 3072},
                          {3500, 8}}) {
      SCOPED_TRACE(std::to_string(s.rows) + " x " + std::to_string(s.width));
      const Tensor before = random({s.rows, s.width}, dtype, 2),
                   grad = random({s.rows, s.width}, dtype);
      const Tensor leaf = wide(before).requires_grad_();
      const Tensor value = at::gelu(leaf, "tanh");
      value.backward(wide(grad));

      const GeluGradients found = backward(before, grad.clone());

      expect_near(found.before, leaf.grad(), "gradient");
      expect_near(found.activation, value.detach(), "activation");
      expect_near(found.bias, leaf.grad().sum(0), "bias");
      const GeluGradients apart = backward(shifted(before), shifted(grad));
      EXPECT_TRUE(torch::equal(apart.before, found.before)) << "not at 16 bytes";
      EXPECT_TRUE(torch::equal(apart.activation, found.activation));
      EXPECT_TRUE(torch::equal(apart.bias, found.bias));
    }
  }
}

TEST_F(GeluKernelsTest, slope_far_from_zero_is_one_or_nothing) {
  const Tensor before =
      torch::tensor({{-1e4, -40.0, 0.0, 40.0, 1e4}}).to(tested_device(), at::kFloat);

  const Tensor found = backward(before, at::ones_like(before)).before;

  EXPECT_TRUE(torch::equal(found.to(at::kCPU), torch::tensor({{0.0f, 0.0f, 0.5f, 1.0f, 1.0f}})));
}

TEST_F(GeluKernelsTest, activation_that_is_not_wanted_is_not_written) {
  const Tensor before = random({5, 64}, at::kBFloat16), grad = random({5, 64}, at::kBFloat16);
  const GeluGradients whole = backward(before, grad.clone());

  const Tensor gradient = grad.clone(),
               partial = at::empty({5, 64}, grad.options().dtype(at::kFloat));
  tested_queue()->launch(&DeviceKernels::gelu_backward,
                         {.dtype = dtype_of(before),
                          .rows = 5,
                          .width = 64,
                          .before = before.const_data_ptr(),
                          .gradient = gradient.mutable_data_ptr(),
                          .activation = nullptr,
                          .bias_partial = partial.mutable_data_ptr<float>()},
                         before);

  EXPECT_TRUE(torch::equal(gradient, whole.before));
}

TEST_F(GeluKernelsTest, sums_of_columns_add_every_part_once) {
  const Tensor partial = at::arange(2 * 1000 * 70, tested_device()).to(at::kFloat).remainder(17);
  const Tensor sums = at::empty({2, 70}, partial.options());

  tested_queue()->launch(&DeviceKernels::column_sums,
                         {.dtype = core::DType::kFloat32,
                          .partial = partial.const_data_ptr<float>(),
                          .parts = 1000,
                          .width = 70,
                          .first = sums.mutable_data_ptr(),
                          .second = sums[1].mutable_data_ptr()},
                         partial);

  // Small whole numbers: sums are exact.
  EXPECT_TRUE(torch::equal(sums, partial.view({2, 1000, 70}).sum(1)));
}

}  // namespace
}  // namespace sidestream::model::device
