// Whole products where AVX2 is all there is, bf16 widened on the way (kernels/float_strip.hpp):
// threads take panels of columns, the right factor's strips are packed once for all rows that pass
// them, and those of fp32 go as they lie.
#pragma once

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

// Tiles have at most `widest` columns. m, n and k are not 0, no factor lies in panels.
template <typename T>
void float_strip_product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                         std::int64_t widest, Epilogue epilogue);

}  // namespace sidestream::model::fused
