// What only a GPU can show of products and attention of NVIDIA's libraries. Needs one.
#include "model/device/multiply.hpp"
#include "tests/model/device/compared_operators.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

// More than one algorithm could be the fastest, and each is timed on the product's own memory.
TEST(GpuProductsTest, the_first_product_of_a_size_is_as_right_as_the_next) {
  const LaunchQueuePtr queue = tested_queue_with_products();
  const Tensor x = device::random({2048, 256}, at::kBFloat16),
               weight = device::random({256, 512}, at::kBFloat16),
               bias = device::random({512}, at::kBFloat16);
  const Tensor expected = at::mm(wide(x), wide(weight)) + wide(bias);

  const Tensor first = multiply_with_bias(*queue, x, {weight, bias});
  const Tensor second = multiply_with_bias(*queue, x, {weight, bias});

  expect_near(first, expected, "first");
  EXPECT_TRUE(torch::equal(first, second));
}

TEST(GpuProductsTest, this_gpu_has_packed_attention) {
  for (const bool deterministic : {false, true}) {
    EXPECT_EQ(
        tested_queue_with_packed_attention()->attention->objection({.dtype = at::kBFloat16,
                                                                    .deterministic = deterministic,
                                                                    .batch = 2,
                                                                    .time = 64,
                                                                    .heads = 2,
                                                                    .head_width = 64}),
        "");
  }
}

}  // namespace
}  // namespace sidestream::model::device
