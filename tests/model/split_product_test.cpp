// fp32 products from bf16 tiles: as accurate as LibTorch's own, in every orientation and for
// awkward sizes.
#include "model/fused/split_product.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>

#include "model/kernels/split.hpp"

namespace sidestream::model::fused {
namespace {

using core::BFloat16;
using torch::Tensor;

float sum_of(BFloat16 hi, BFloat16 mid, BFloat16 lo) {
  return static_cast<float>(hi) + (static_cast<float>(mid) + static_cast<float>(lo));
}

TEST(SplitTest, three_parts_carry_the_whole_number) {
  std::vector<float> numbers = {0.0f,  -0.0f,   1.0f,        1.0f / 3, -3.14159274f,
                                1e30f, -1e-30f, 16777215.0f, 0.1f};
  for (float x = 1e-20f; x < 1e20f; x *= 1.37f) numbers.push_back(-x);
  for (const std::uint32_t word : {0x7F7FFFFFu, 0x7F7F8000u, 0x7F7F7FFFu, 0xFF7FFFFFu, 0xFF7F8001u})
    numbers.push_back(std::bit_cast<float>(word));  // the largest: the nearest of bf16 is infinite
  const auto n = static_cast<std::int64_t>(numbers.size());
  std::vector<BFloat16> parts(3 * numbers.size());
  kernels::split_rows(numbers.data(), n, {.rows = 1, .columns = n},
                      {.data = parts.data(), .stride = 3 * n, .padded_columns = n});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(sum_of(parts[i], parts[i + numbers.size()], parts[i + 2 * numbers.size()]),
              numbers[i]);
  }
}

TEST(SplitTest, what_is_no_number_stays_none) {
  std::vector<float> numbers;
  for (const std::uint32_t word : {0x7FC00000u, 0x7F800001u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFFC00000u})
    numbers.push_back(std::bit_cast<float>(word));  // 0x7FFFFFFF: CUDA's
  const auto n = static_cast<std::int64_t>(numbers.size());
  std::vector<BFloat16> parts(3 * numbers.size());
  kernels::split_rows(numbers.data(), n, {.rows = 1, .columns = n},
                      {.data = parts.data(), .stride = 3 * n, .padded_columns = n});
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_TRUE(std::isnan(static_cast<float>(parts[i]))) << i;
}

TEST(SplitTest, padding_is_zero) {
  const std::vector<float> source(3 * 5, 1.5f);  // 3 rows of 5
  std::vector<BFloat16> rows(3 * 100, BFloat16(7.0f));
  kernels::split_rows(source.data(), 5, {.rows = 3, .columns = 5},
                      {.data = rows.data(), .stride = 100, .padded_columns = 32});
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 96; ++column) {
      const float expected = column < 5 ? 1.5f : 0.0f;  // no middle and no low part
      EXPECT_EQ(static_cast<float>(rows[static_cast<std::size_t>(row * 100 + column)]), expected)
          << row << ", " << column;
    }
  }
  std::vector<BFloat16> panel(3 * 4 * 8, BFloat16(7.0f));
  kernels::split_panel(source.data(), 5, {.k = 3, .n = 5, .padded_k = 4, .width = 8}, panel.data());
  for (int k = 0; k < 12; ++k) {
    for (int column = 0; column < 8; ++column) {
      const auto place = static_cast<std::size_t>(k / 2 * 16 + column * 2 + k % 2);
      const bool filled = k >= 8 && k < 11 && column < 5;  // the high parts come last
      EXPECT_EQ(static_cast<float>(panel[place]), filled ? 1.5f : 0.0f) << k << ", " << column;
    }
  }
}

struct Sizes {
  std::int64_t m, n, k;
};

class SplitProductTest : public testing::TestWithParam<Sizes> {
 protected:
  void SetUp() override { torch::manual_seed(5); }
  Tensor random(std::int64_t rows, std::int64_t columns) const {
    return torch::randn({rows, columns});
  }
};

// Of every element, relative to the sum of absolute products: what rounding is measured by.
double largest_error(const Tensor& found, const Tensor& a, const Tensor& b) {
  const Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
  const Tensor scale = a.to(at::kDouble).abs().mm(b.to(at::kDouble).abs());
  return ((found.to(at::kDouble) - exact).abs() / scale).max().item<double>();
}

TEST_P(SplitProductTest, is_as_accurate_as_fp32) {
  const auto [m, n, k] = GetParam();
  const Tensor a = random(m, k), b = random(k, n), a_t = a.t().contiguous(),
               b_t = b.t().contiguous();
  // The rounding of one number at least; dot products of AVX-512 round each of both products.
  const double least = kernels::has_amx() ? 1.2e-7 : 2.4e-7;
  const double bound = std::max(1.5 * largest_error(a.mm(b), a, b), least);
  for (const bool left_turned : {false, true}) {
    for (const bool right_turned : {false, true}) {
      Tensor out = torch::full({m, n + 3}, 9.0f);
      split_product_into(
          {.m = m, .n = n, .k = k},
          {.data = data_of<float>(left_turned ? a_t : a),
           .stride = left_turned ? m : k,
           .orientation = left_turned ? Orientation::kTransposed : Orientation::kAsIs},
          {.data = data_of<float>(right_turned ? b_t : b),
           .stride = right_turned ? k : n,
           .orientation = right_turned ? Orientation::kTransposed : Orientation::kAsIs},
          {data_of<float>(out), n + 3}, Existing::kReplace);
      EXPECT_LE(largest_error(out.narrow(1, 0, n), a, b), bound) << left_turned << right_turned;
      EXPECT_TRUE(
          out.narrow(1, n, 3).eq(9.0f).all().item<bool>());  // what is beside the product stays
    }
  }
}

TEST_P(SplitProductTest, adds_to_what_is_there) {
  const auto [m, n, k] = GetParam();
  const Tensor a = random(m, k), b = random(k, n), before = random(m, n) * 100;
  Tensor fresh = torch::empty({m, n}), out = before.clone();
  const ProductShape shape{.m = m, .n = n, .k = k};
  split_product_into(shape, {data_of<float>(a), k}, {data_of<float>(b), n},
                     {data_of<float>(fresh), n}, Existing::kReplace);
  split_product_into(shape, {data_of<float>(a), k}, {data_of<float>(b), n},
                     {data_of<float>(out), n}, Existing::kAdd);
  EXPECT_TRUE(torch::allclose(out, before + fresh, 1e-6, 1e-4));
}

TEST_P(SplitProductTest, does_not_depend_on_the_number_of_threads) {
  const auto [m, n, k] = GetParam();
  const Tensor a = random(m, k), b = random(k, n);
  const int before = at::get_num_threads();
  std::vector<Tensor> results;
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    results.push_back(torch::empty({m, n}));
    split_product_into({.m = m, .n = n, .k = k}, {data_of<float>(a), k}, {data_of<float>(b), n},
                       {data_of<float>(results.back()), n}, Existing::kReplace);
  }
  at::set_num_threads(before);
  EXPECT_TRUE(torch::equal(results[0], results[1]));
}

TEST_P(SplitProductTest, a_number_that_is_none_stays_visible) {
  const auto [m, n, k] = GetParam();
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Tensor a = random(m, k), out = torch::empty({m, n});
    const Tensor b = random(k, n);
    a[m - 1][k - 1] = bad;
    split_product_into({.m = m, .n = n, .k = k}, {data_of<float>(a), k}, {data_of<float>(b), n},
                       {data_of<float>(out), n}, Existing::kReplace);
    EXPECT_FALSE(out[m - 1].isfinite().any().item<bool>());
    EXPECT_TRUE(out.narrow(0, 0, m - 1).isfinite().all().item<bool>());
  }
}

// Beyond one run of rows, one packed chunk of columns and one block of k; odd; the smallest that is
// split.
INSTANTIATE_TEST_SUITE_P(Sizes, SplitProductTest,
                         testing::Values(Sizes{64, 128, 384}, Sizes{300, 200, 1100},
                                         Sizes{33, 37, 7}, Sizes{65, 4000, 513}, Sizes{32, 32, 1}));

}  // namespace
}  // namespace sidestream::model::fused
