// Products of bf16 in which few rows of the left factor use what lies in memory of the right one,
// by dot products of AVX-512 (kernels/dot_product.hpp): what packs 32 columns multiplies with them
// at once, and the columns that follow come from memory while the other rows pass. A panel that is
// packed first waits for memory all that time, a fifth of a product of 128 rows.
#pragma once

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

// Whether columns of the right factor can be packed while its few rows pass.
bool packs_in_passing(const ProductShape& shape, const RightFactor<core::BFloat16>& b);

// Whether this processor has them, that is so, and the left factor lies as it is multiplied.
bool few_rows_pay(const ProductShape& shape, const LeftFactor<core::BFloat16>& a,
                  const RightFactor<core::BFloat16>& b);

// Tiles of all bits as blocked_product() makes them. m, n and k are not 0.
void few_rows_product(const ProductShape& shape, const LeftFactor<core::BFloat16>& a,
                      const RightFactor<core::BFloat16>& b, Epilogue epilogue);

}  // namespace sidestream::model::fused
