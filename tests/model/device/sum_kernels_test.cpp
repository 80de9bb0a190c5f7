// Sums over rows, and tensors times a number on the device, against LibTorch in double.
#include "model/device/bias_gradient.hpp"
#include "model/device/geometry.hpp"
#include "tests/model/device/near_tensors.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

struct SumKernelsTest : testing::Test {
  SumKernelsTest() { torch::manual_seed(15); }
};

TEST_F(SumKernelsTest, every_row_is_added_once) {
  for (const at::ScalarType dtype : kDtypes) {
    for (const auto& [rows, width] :
         {std::pair{1, 1}, {3, 7}, {5, 8}, {300, 64}, {4, 1000}, {3, 1032}, {9000, 8}}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(width));
      const Tensor x = random({rows, width}, dtype) + 1;

      const Tensor found = bias_gradient(*tested_queue(), x);

      expect_near(found, wide(x).sum(0), "sums");
      EXPECT_TRUE(torch::equal(bias_gradient(*tested_queue(), shifted(x)), found));
    }
  }
  EXPECT_GT(9000, 2 * 4 * row_parts(9000, 8)) << "a thread goes round more than once";
}

void scale(const Tensor& values, double factor) {
  const Tensor on_device = at::full({1}, factor, values.options().dtype(at::kFloat));
  tested_queue()->launch(&DeviceKernels::scale,
                         {.dtype = dtype_of(values),
                          .count = values.numel(),
                          .values = values.mutable_data_ptr(),
                          .factor = on_device.const_data_ptr<float>()},
                         values);
}

TEST_F(SumKernelsTest, every_element_is_scaled_once) {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t count : {1, 7, 8, 9, 1000, 4099}) {
      for (const double factor : {0.375, 1.0, -3.0}) {
        SCOPED_TRACE(std::to_string(count) + " times " + std::to_string(factor));
        const Tensor before = random({count}, dtype);
        const Tensor values = before.clone(), apart = shifted(before);

        scale(values, factor);
        scale(apart, factor);

        EXPECT_TRUE(torch::equal(values.cpu(), (wide(before) * factor).to(dtype)));
        EXPECT_TRUE(torch::equal(apart, values)) << "not at 16 bytes";
      }
    }
  }
  const Tensor values = random({9}, at::kFloat);
  scale(values, std::nan(""));
  EXPECT_TRUE(values.isnan().all().item<bool>());
}

}  // namespace
}  // namespace sidestream::model::device
