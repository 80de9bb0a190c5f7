// Layouts that block products want.
//
// The right factor B [k, n] of a product becomes a panel: rows of `width` elements, for bf16 with
// rows 2i and 2i + 1 interleaved element by element (what AMX and vdpbf16ps multiply). Rows from k
// on and columns from n on are zero. Element types: float and core::BFloat16.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"

namespace sidestream::model::kernels {

struct PanelShape {
  std::int64_t k = 0, n = 0;  // of the source
  std::int64_t padded_k = 0;  // even for bf16
  std::int64_t width = 0;     // elements of a panel row, at least n
};

// source is B itself: [k, n], rows `stride` elements apart.
void pack_rows(const float* source, std::int64_t stride, const PanelShape& shape, float* panel);
void pack_rows(const core::BFloat16* source, std::int64_t stride, const PanelShape& shape,
               core::BFloat16* panel);

// source is B transposed: [n, k].
void pack_transposed(const float* source, std::int64_t stride, const PanelShape& shape,
                     float* panel);
void pack_transposed(const core::BFloat16* source, std::int64_t stride, const PanelShape& shape,
                     core::BFloat16* panel);

struct MatrixShape {
  std::int64_t rows = 0, columns = 0;
};

// target [columns, rows] = source^T, rows `target_stride` apart; target's columns from `rows` up to
// target_stride are zero.
void transpose(const float* source, std::int64_t stride, const MatrixShape& shape, float* target,
               std::int64_t target_stride);
void transpose(const core::BFloat16* source, std::int64_t stride, const MatrixShape& shape,
               core::BFloat16* target, std::int64_t target_stride);

// The same without the zeros. Of bf16 target starts at a word, and target_stride is even.
void transpose_into(const float* source, std::int64_t stride, const MatrixShape& shape,
                    float* target, std::int64_t target_stride);
void transpose_into(const core::BFloat16* source, std::int64_t stride, const MatrixShape& shape,
                    core::BFloat16* target, std::int64_t target_stride);

}  // namespace sidestream::model::kernels
