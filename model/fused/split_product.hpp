// fp32 products on a processor that multiplies bf16 in tiles: every factor as a sum of three bf16
// numbers (kernels/split.hpp), six bf16 products for one of fp32, sums in fp32. As accurate as a
// product in fp32, and faster on AMX.
#pragma once

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

// Whether the processor has AMX, and the product is large enough for the splitting to pay.
bool splitting_pays(const ProductShape& shape);

// As product<float>.
void split_product(const ProductShape& shape, const LeftFactor<float>& a,
                   const RightFactor<float>& b, Epilogue epilogue);

// As product_into<float>.
void split_product_into(const ProductShape& shape, const LeftFactor<float>& a,
                        const RightFactor<float>& b, kernels::Rows<float> out, Existing existing);

}  // namespace sidestream::model::fused
