// fp32 numbers as sums of three bf16 numbers.
//
// x = hi + mid + lo, each the rounding of what the ones before it leave; 8 bits each, so that the
// three carry the 24 bits of an fp32 significand. A product of two such sums, without the terms
// below 2^-24 of it, is
//   hi hi + (hi mid + mid hi) + (hi lo + mid mid + lo hi)
// (Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For
// Higher-Precision Computations, 2019). Parts below the smallest normal number are lost, and
// infinity splits into NaN.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "model/kernels/pack.hpp"

namespace sidestream::model::kernels {

// target rows are [hi | mid | lo], each padded_columns wide with zeros behind shape.columns.
struct SplitRows {
  core::BFloat16* data = nullptr;
  std::int64_t stride = 0, padded_columns = 0;
};
void split_rows(const float* source, std::int64_t stride, const MatrixShape& shape,
                const SplitRows& target);

// A panel of 3 padded_k rows (layout of pack_rows): lo, then mid, then hi, so that [hi | mid | lo]
// times it gives the smallest terms, [hi | mid] times its last two thirds the next, and hi times
// its last third the largest.
void split_panel(const float* source, std::int64_t stride, const PanelShape& shape,
                 core::BFloat16* panel);

}  // namespace sidestream::model::kernels
