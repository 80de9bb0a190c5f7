// Strips for the units of AVX2 against a plain loop in double, on any processor.
#include "model/kernels/float_strip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/multiple.hpp"
#include "tests/model/small_matrix.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

struct Sizes {
  std::int64_t m, n, k;
};
enum class Lies { kAsIs, kTransposed };

template <typename T>
std::vector<float> strips_of(Matrix<T>& b, const Sizes& sizes, Lies lies) {
  const auto [m, n, k] = sizes;
  // NaN: whatever is not written shows in the sums.
  std::vector<float> strips(static_cast<std::size_t>(k * core::rounded_up(n, kFloatStripColumns)),
                            NAN);
  if (lies == Lies::kAsIs) {
    pack_float_strips(b.data.data(), b.stride, {.k = k, .n = n}, strips.data());
    return strips;
  }
  constexpr std::int64_t kBeside = 2;
  Matrix<T> turned(n, k, kBeside);
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < n; ++j) turned.at(j, i) = b.at(i, j);
  }
  pack_float_strips_transposed(turned.data.data(), turned.stride, {.k = k, .n = n}, strips.data());
  return strips;
}

void multiply_strips(const Matrix<float>& a, const std::vector<float>& strips, Matrix<float>& c,
                     const Sizes& sizes, Accumulate accumulate) {
  for (std::int64_t column = 0; column < sizes.n; column += kFloatStripColumns)
    multiply_float_strip({.m = sizes.m,
                          .k = sizes.k,
                          .a = a.data.data(),
                          .a_stride = a.stride,
                          .strip = strips.data() + column * sizes.k,
                          .columns = std::min(kFloatStripColumns, sizes.n - column),
                          .c = c.data.data() + column,
                          .c_stride = c.stride,
                          .accumulate = accumulate});
}

template <typename T>
void expect_product(const Sizes& sizes, Lies lies, Accumulate accumulate) {
  constexpr std::int64_t kBeside = 3;
  constexpr float kBefore = 3.0f, kUntouched = 7.0f;
  const auto [m, n, k] = sizes;
  Matrix<T> a = random<T>(m, k, kBeside, 1), b = random<T>(k, n, kBeside, 2);
  Matrix<float> wide(m, k, 1), c(m, n, kBeside);
  widen_rows(a.data.data(), a.stride, m, k, wide.data.data(), wide.stride);
  for (std::int64_t i = 0; i < m; ++i) {
    std::fill_n(&c.at(i, 0), n, kBefore);
    std::fill_n(&c.at(i, 0) + n, kBeside, kUntouched);
  }

  multiply_strips(wide, strips_of(b, sizes, lies), c, sizes, accumulate);

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

class FloatStripTest : public testing::TestWithParam<Sizes> {};

TEST_P(FloatStripTest, fp32_equals_a_loop_in_double) {
  for (const Lies lies : {Lies::kAsIs, Lies::kTransposed}) {
    expect_product<float>(GetParam(), lies, Accumulate::kNo);
    expect_product<float>(GetParam(), lies, Accumulate::kYes);
  }
}

TEST_P(FloatStripTest, bf16_equals_a_loop_in_double) {
  for (const Lies lies : {Lies::kAsIs, Lies::kTransposed}) {
    expect_product<BFloat16>(GetParam(), lies, Accumulate::kNo);
    expect_product<BFloat16>(GetParam(), lies, Accumulate::kYes);
  }
}

// Every number of rows beside whole tiles, columns beside whole strips, and of k beside whole lines
// and pairs.
INSTANTIATE_TEST_SUITE_P(Sizes, FloatStripTest,
                         testing::Values(Sizes{1, 1, 1}, Sizes{2, 16, 2}, Sizes{3, 17, 7},
                                         Sizes{4, 32, 16}, Sizes{5, 31, 17}, Sizes{6, 48, 64},
                                         Sizes{7, 15, 33}, Sizes{13, 40, 200}, Sizes{200, 33, 384}),
                         [](const auto& info) {
                           const Sizes& sizes = info.param;
                           return std::to_string(sizes.m) + "_" + std::to_string(sizes.n) + "_" +
                                  std::to_string(sizes.k);
                         });

}  // namespace
}  // namespace sidestream::model::kernels
