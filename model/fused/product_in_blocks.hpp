// Whole products by our own loops: in blocks that the processor multiplies fastest, or bf16 in fp32
// units where those are as fast.
#pragma once

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

// As product<T>.
template <typename T>
void product_in_blocks(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                       Epilogue epilogue);

// As product_into<T>.
template <typename T>
void product_in_blocks_into(const ProductShape& shape, const LeftFactor<T>& a,
                            const RightFactor<T>& b, kernels::Rows<T> out, Existing existing,
                            NextRead next_read);

}  // namespace sidestream::model::fused
