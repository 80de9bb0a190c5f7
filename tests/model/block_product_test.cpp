// Products of blocks on any processor against a plain loop in double.
#include "model/kernels/block_product.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "model/kernels/pack.hpp"
#include "tests/model/small_matrix.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

struct Sizes {
  std::int64_t m, n, k;
};

// B as it lies.
template <typename T>
void multiply_in_parts(const Matrix<T>& a, const Matrix<T>& b, Matrix<float>& c, const Sizes& sizes,
                       Accumulate accumulate) {
  std::vector<float> left(static_cast<std::size_t>(sizes.m * kWidenedStride));
  for (std::int64_t k = 0; k < sizes.k; k += kWidenedDepth) {
    const std::int64_t depth = std::min(kWidenedDepth, sizes.k - k);
    widen_rows(a.data.data() + k, a.stride, sizes.m, depth, left.data());
    multiply_part(PartProduct<T>{.m = sizes.m,
                                 .n = sizes.n,
                                 .k = depth,
                                 .a = left.data(),
                                 .b = b.data.data() + k * b.stride,
                                 .b_stride = b.stride,
                                 .c = c.data.data(),
                                 .c_stride = c.stride,
                                 .accumulate = k > 0 ? Accumulate::kYes : accumulate});
  }
}

enum class Parts { kNo, kYes };

template <typename T>
void expect_product(const Sizes& sizes, Accumulate accumulate, Parts in_parts = Parts::kNo) {
  constexpr std::int64_t kBeside = 2;
  constexpr float kBefore = 3.0f, kUntouched = 7.0f;
  const auto [m, n, k] = sizes;
  Matrix<T> a = random<T>(m, k, kBeside, 1), b = random<T>(k, n, 0, 2);
  const std::int64_t width = n + 3;
  const std::int64_t padded_k = k + k % 2;
  Matrix<T> panel(padded_k, width);
  pack_rows(b.data.data(), n, {.k = k, .n = n, .padded_k = padded_k, .width = width},
            panel.data.data());
  Matrix<float> c(m, n, kBeside);
  for (float& element : c.data) element = kUntouched;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) c.at(i, j) = kBefore;
  }

  if (in_parts == Parts::kNo) {
    multiply_widened(BlockProduct<T>{.m = m,
                                     .n = n,
                                     .k = k,
                                     .a = a.data.data(),
                                     .a_stride = a.stride,
                                     .b = panel.data.data(),
                                     .b_stride = width,
                                     .c = c.data.data(),
                                     .c_stride = c.stride,
                                     .accumulate = accumulate});
  } else {
    multiply_in_parts(a, b, c, sizes, accumulate);
  }

  const double before = accumulate == Accumulate::kYes ? kBefore : 0.0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const Exact exact = element_of_product(a, b, i, j, k);
      const double allowed =
          1e-7 * (4 + std::sqrt(static_cast<double>(k))) * (exact.magnitude + before);
      ASSERT_NEAR(c.at(i, j), exact.sum + before, allowed) << i << ", " << j;
    }
    for (std::int64_t j = n; j < c.stride; ++j) ASSERT_EQ(c.at(i, j), kUntouched) << i;
  }
}

class BlockProductTest : public testing::TestWithParam<Sizes> {};

TEST_P(BlockProductTest, multiply_fp32_equals_a_loop_in_double) {
  expect_product<float>(GetParam(), Accumulate::kNo);
  expect_product<float>(GetParam(), Accumulate::kYes);
}

TEST_P(BlockProductTest, multiply_bf16_equals_a_loop_in_double) {
  expect_product<BFloat16>(GetParam(), Accumulate::kNo);
  expect_product<BFloat16>(GetParam(), Accumulate::kYes);
}

TEST_P(BlockProductTest, parts_of_rows_equal_a_loop_in_double) {
  expect_product<float>(GetParam(), Accumulate::kYes, Parts::kYes);
  expect_product<BFloat16>(GetParam(), Accumulate::kNo, Parts::kYes);
}

TEST(BlockProductPartsTest, odd_k_of_rows) {
  for (const std::int64_t k : {1, 3, 255, 257})
    expect_product<BFloat16>({19, 45, k}, Accumulate::kNo, Parts::kYes);
}

// Every number of rows beside whole tiles, columns beside whole strips, more rows than a block and
// more of k than a strip.
INSTANTIATE_TEST_SUITE_P(Sizes, BlockProductTest,
                         testing::Values(Sizes{1, 1, 2}, Sizes{6, 16, 2}, Sizes{7, 17, 4},
                                         Sizes{8, 31, 6}, Sizes{9, 32, 64}, Sizes{10, 15, 256},
                                         Sizes{11, 48, 258}, Sizes{97, 20, 30}, Sizes{200, 33, 514},
                                         Sizes{12, 64, 8}, Sizes{13, 40, 6}, Sizes{14, 32, 10}),
                         [](const auto& info) {
                           const Sizes& sizes = info.param;
                           return std::to_string(sizes.m) + "_" + std::to_string(sizes.n) + "_" +
                                  std::to_string(sizes.k);
                         });

}  // namespace
}  // namespace sidestream::model::kernels
