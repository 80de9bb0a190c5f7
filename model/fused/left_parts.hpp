// The left factor of a product in parts of k, as blocks take it.
#pragma once

#include "model/fused/product.hpp"
#include "model/kernels/pack.hpp"

namespace sidestream::model::fused {

// A [m, k] in parts of `depth` of k: each has rows `stride` apart, and starts `part_step` after the
// last one.
template <typename T>
struct LeftParts {
  const T* data = nullptr;
  std::int64_t stride = 0, part_step = 0, depth = 0;
  torch::Tensor storage = {};  // of a factor that lay the other way round
};

// shape: of A. A transposed factor is copied; one in panels has them as its parts, and `depth` is
// their width.
template <typename T>
LeftParts<T> parts_of(const LeftFactor<T>& a, const kernels::MatrixShape& shape,
                      std::int64_t depth);

}  // namespace sidestream::model::fused
