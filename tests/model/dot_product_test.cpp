// Strips of products on any processor against a plain loop in double.
#include "model/kernels/dot_product.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/model/small_matrix.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

using Bf16Matrix = Matrix<BFloat16>;

Bf16Matrix transposed(Bf16Matrix& matrix, std::int64_t rows, std::int64_t columns) {
  Bf16Matrix result(columns, rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column)
      result.at(column, row) = matrix.at(row, column);
  }
  return result;
}

// Of [k, n], as strips that held something else before.
std::vector<BFloat16> strips_for(std::int64_t padded_k, std::int64_t n) {
  const std::int64_t strips = (n + kStripColumns - 1) / kStripColumns;
  return std::vector<BFloat16>(static_cast<std::size_t>(strips * padded_k * kStripColumns),
                               BFloat16(7.0f));
}

struct PackedSizes {
  std::int64_t k, n;
};
constexpr PackedSizes kPacked[] = {{2, 1}, {6, 32}, {7, 33}, {40, 96}, {33, 70}, {64, 131}};

TEST(StripPackingTest, rows_lie_in_pairs_and_what_is_not_there_is_zero) {
  for (const auto& [k, n] : kPacked) {
    const std::int64_t padded_k = (k + 1) / 2 * 2;
    Bf16Matrix b = random<BFloat16>(k, n, 5, 3), b_t = transposed(b, k, n);
    std::vector<BFloat16> strips = strips_for(padded_k, n), of_transposed = strips;

    pack_strips(b.data.data(), b.stride, {.k = k, .n = n, .padded_k = padded_k}, strips.data());
    pack_strips_transposed(b_t.data.data(), b_t.stride, {.k = k, .n = n, .padded_k = padded_k},
                           of_transposed.data());

    for (std::size_t i = 0; i < strips.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      const std::int64_t strip = place / (padded_k * kStripColumns);
      const std::int64_t inside = place % (padded_k * kStripColumns);
      const std::int64_t pair = inside / (2 * kStripColumns);
      const std::int64_t row = 2 * pair + inside % 2;
      const std::int64_t column = strip * kStripColumns + inside % (2 * kStripColumns) / 2;
      const bool is_there = row < k && column < n;
      const std::uint16_t expected = is_there ? b.at(row, column).bits : 0;
      ASSERT_EQ(strips[i].bits, expected) << k << " x " << n << " at " << row << ", " << column;
      ASSERT_EQ(of_transposed[i].bits, expected) << "of the transposed one";
    }
  }
}

struct StripCase {
  StripCase(std::int64_t rows, std::int64_t width, std::int64_t depth)
      : m(rows),
        columns(width),
        k(depth),
        a(random<BFloat16>(m, k, 3, 1)),
        b(random<BFloat16>(k, columns, 0, 2)) {
    strip = strips_for(k, columns);
    bias = random<BFloat16>(1, columns, 0, 4).data;
    pack_strips(b.data.data(), b.stride, {.k = k, .n = columns, .padded_k = k}, strip.data());
  }

  StripProduct product(bool with_bias) const {
    return {.m = m,
            .k = k,
            .a = a.data.data(),
            .a_stride = a.stride,
            .strip = strip.data(),
            .columns = columns,
            .bias = with_bias ? bias.data() : nullptr};
  }

  // Half a unit of bf16 in the last place, and the rounding of sums in fp32.
  void expect_at(float found, std::int64_t row, std::int64_t column, bool with_bias) {
    Exact exact = element_of_product(a, b, row, column, k);
    if (with_bias) {
      const double more = static_cast<float>(bias[static_cast<std::size_t>(column)]);
      exact.sum += more;
      exact.magnitude += std::abs(more);
    }
    ASSERT_NEAR(found, exact.sum, 4.2e-3 * std::abs(exact.sum) + 6e-7 * exact.magnitude)
        << m << " x " << columns << " x " << k << " at " << row << ", " << column;
  }

  std::int64_t m, columns, k;
  Bf16Matrix a, b;
  std::vector<BFloat16> strip, bias;
};

TEST(StripProductTest, equals_the_product_in_double_and_touches_nothing_else) {
  for (std::int64_t m = 1; m <= 3 * kDotTileRows; ++m) {
    for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{17}, kStripColumns}) {
      StripCase one(m, columns, 2 * m + 2);
      for (const bool with_bias : {false, true}) {
        Bf16Matrix out(m + 1, columns, 4);
        for (BFloat16& element : out.data) element = BFloat16(9.0f);

        multiply_strip(one.product(with_bias), {out.data.data(), out.stride});

        for (std::int64_t row = 0; row <= m; ++row) {
          for (std::int64_t column = 0; column < out.stride; ++column) {
            const auto found = static_cast<float>(out.at(row, column));
            if (row < m && column < columns)
              one.expect_at(found, row, column, with_bias);
            else
              ASSERT_EQ(found, 9.0f) << "beside the product";
          }
        }
      }
    }
  }
}

TEST(StripProductTest, past_the_caches_it_is_the_same) {
  constexpr std::int64_t kMostRows = 2 * kDotTileRows + 1, kStride = 2 * kStripColumns;
  struct alignas(64) Lines {
    BFloat16 at[kMostRows * kStride];
  };
  const auto past = std::make_unique<Lines>();
  for (std::int64_t m = 1; m <= kMostRows; ++m) {
    StripCase one(m, kStripColumns, 66);
    std::fill(std::begin(past->at), std::end(past->at), BFloat16(9.0f));

    multiply_strip_past_caches(one.product(/*with_bias=*/true), {past->at, kStride});
    finish_stores_past_caches();

    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < kStride; ++column) {
        const auto found = static_cast<float>(past->at[row * kStride + column]);
        if (column < kStripColumns)
          one.expect_at(found, row, column, /*with_bias=*/true);
        else
          ASSERT_EQ(found, 9.0f) << "beside the product";
      }
    }
  }
}

// One strip of a wider B, whose columns beside it are fetched.
struct PackingCase : StripCase {
  PackingCase(std::int64_t rows, std::int64_t depth)
      : StripCase(rows, kStripColumns, depth), packed(strips_for(depth, kStripColumns)) {}

  StripSource source(bool with_later) {
    return {.rows = b.data.data(),
            .stride = b.stride,
            .strip = packed.data(),
            .later = with_later ? b.data.data() : nullptr};
  }
  StripProduct unpacked(bool with_bias) const {
    StripProduct rows = product(with_bias);
    rows.strip = nullptr;
    return rows;
  }
  void expect_packed() const {
    for (std::size_t i = 0; i < strip.size(); ++i)
      ASSERT_EQ(packed[i].bits, strip[i].bits) << m << " rows, depth " << k << ", word " << i;
  }

  std::vector<BFloat16> packed;
};

std::vector<std::uint16_t> bits_of(const Bf16Matrix& matrix) {
  std::vector<std::uint16_t> bits;
  for (const BFloat16& element : matrix.data) bits.push_back(element.bits);
  return bits;
}

TEST(StripProductTest, packed_in_passing_it_has_the_same_bits) {
  for (std::int64_t m = 1; m <= 8 * kDotTileRows; m += 5) {
    for (const std::int64_t k : {2, 6, 64, 130}) {
      for (const bool with : {false, true}) {
        PackingCase one(m, k);
        Bf16Matrix expected(m, kStripColumns, 4), found(m, kStripColumns, 4);
        found.data = expected.data;

        multiply_strip(one.product(with), {expected.data.data(), expected.stride});
        pack_and_multiply_strip(one.unpacked(with), one.source(with),
                                {found.data.data(), found.stride});

        one.expect_packed();
        ASSERT_EQ(bits_of(found), bits_of(expected)) << m << " rows, depth " << k;
      }
    }
  }
}

TEST(StripProductTest, sums_in_fp32_replace_what_is_there_or_are_added_to_it) {
  for (const std::int64_t m : {1, 12, 40, 100}) {
    PackingCase one(m, 66);
    Matrix<float> packed_first = random<float>(m, kStripColumns, 4, 6), in_passing = packed_first;
    const Matrix<float> before = packed_first;
    for (const Accumulate accumulate : {Accumulate::kYes, Accumulate::kNo}) {
      in_passing.data = packed_first.data = before.data;

      multiply_strip(one.product(false), {.rows = {packed_first.data.data(), packed_first.stride},
                                          .accumulate = accumulate});
      pack_and_multiply_strip(
          one.unpacked(false), one.source(true),
          StripSums{.rows = {in_passing.data.data(), in_passing.stride}, .accumulate = accumulate});

      ASSERT_EQ(in_passing.data, packed_first.data);
      for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t column = 0; column < kStripColumns; ++column) {
          const auto at = static_cast<std::size_t>(row * before.stride + column);
          const float there = accumulate == Accumulate::kYes ? before.data[at] : 0;
          const Exact exact = element_of_product(one.a, one.b, row, column, one.k);
          ASSERT_NEAR(in_passing.data[at], there + exact.sum,
                      1e-6 * (std::abs(there) + exact.magnitude));
        }
      }
    }
  }
}

}  // namespace
}  // namespace sidestream::model::kernels
