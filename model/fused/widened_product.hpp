// Whole matrix products in the fp32 units of the processor, bf16 widened on the way: columns of B
// pass all rows of A that fit a second-level cache. For processors that multiply bf16 no faster
// than fp32.
#pragma once

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

template <typename T>
void widened_product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                     Epilogue epilogue);

}  // namespace sidestream::model::fused
