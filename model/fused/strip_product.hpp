// Whole products of bf16 that are only written where they belong, by dot products of AVX-512
// (kernels/dot_product.hpp): threads take panels of columns, packed once, a strip of a panel passes
// some rows of the left factor after another, and what comes out is rounded in registers. For
// shallow products: a deep one's sums would have to wait in memory for the next part.
#pragma once

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

// Whether this processor has them, and the product is shallow. Factors in panels are for tiles.
bool strips_pay(const ProductShape& shape, const LeftFactor<core::BFloat16>& a,
                const RightFactor<core::BFloat16>& b);

enum class Caches { kThrough, kPast };  // past them: non-temporal stores

// Where the product goes.
struct StripTarget {
  kernels::Rows<core::BFloat16> rows;
  Caches caches = Caches::kThrough;      // past them where rows begin at cache lines
  const core::BFloat16* bias = nullptr;  // [n], added to every row; null: none
};

// m, n and k are not 0.
void strip_product(const ProductShape& shape, const LeftFactor<core::BFloat16>& a,
                   const RightFactor<core::BFloat16>& b, const StripTarget& target);

}  // namespace sidestream::model::fused
