// Shallow products of bf16 by the dot products of AVX-512 (VDPBF16PS), rounded in registers on
// their way out: nothing of the product is written and read again in fp32, and a line past the
// caches leaves between two tiles, not as one of thousands that the processor waits for.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "model/kernels/block_product.hpp"
#include "model/kernels/epilogue.hpp"

namespace sidestream::model::kernels {

// Whether this processor has them, and they are what it multiplies bf16 fastest with.
bool has_fast_dot_products() noexcept;

// Columns of B that pass all rows of A together: [k / 2][kStripColumns] pairs, of B's rows 2i and
// 2i + 1.
constexpr std::int64_t kStripColumns = 32;
// Rows of A whose sums are in registers at once.
constexpr std::int64_t kDotTileRows = 13;

// B [k, n], rows `stride` elements apart, becomes strips of padded_k rows, one after another.
// Rows from k on and columns from n on are zero. padded_k is even.
struct StripShape {
  std::int64_t k = 0, n = 0, padded_k = 0;
};
void pack_strips(const core::BFloat16* source, std::int64_t stride, const StripShape& shape,
                 core::BFloat16* strips);
// The same of B transposed, [n, k].
void pack_strips_transposed(const core::BFloat16* source, std::int64_t stride,
                            const StripShape& shape, core::BFloat16* strips);

// A [m, k], k even, and a strip.
struct StripProduct {
  std::int64_t m = 0, k = 0;
  const core::BFloat16* a = nullptr;
  std::int64_t a_stride = 0;
  const core::BFloat16* strip = nullptr;
  std::int64_t columns = kStripColumns;  // of the strip, at most so many
  const core::BFloat16* bias = nullptr;  // [columns], null: none
};

// out = A times the strip, and the bias: each a sum over pairs of k in order in one fp32 number,
// rounded once. On a processor without dot products in plain loops, whose last bits may differ.
void multiply_strip(const StripProduct& product, Rows<core::BFloat16> out);
// The same past the caches, of a whole strip: out's rows begin at cache lines.
// finish_stores_past_caches() before anyone else may read it.
void multiply_strip_past_caches(const StripProduct& product, Rows<core::BFloat16> out);

// Sums in fp32 of whole strips, put in place of what is there or added to it.
struct StripSums {
  Rows<float> rows;
  Accumulate accumulate = Accumulate::kNo;
};
void multiply_strip(const StripProduct& product, const StripSums& sums);

// Columns of B as they lie: they become the strip of a product while its first rows of A pass.
struct StripSource {
  const core::BFloat16* rows = nullptr;  // [k, kStripColumns]
  std::int64_t stride = 0;
  core::BFloat16* strip = nullptr;        // k * kStripColumns, written
  const core::BFloat16* later = nullptr;  // columns that come next, fetched meanwhile; null: none
};
// The same bits as pack_strips() and multiply_strip(). Whole strips; product.strip is not read.
void pack_and_multiply_strip(const StripProduct& product, const StripSource& source,
                             Rows<core::BFloat16> out);
void pack_and_multiply_strip(const StripProduct& product, const StripSource& source,
                             const StripSums& sums);

}  // namespace sidestream::model::kernels
