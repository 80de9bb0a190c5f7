// A whole matrix product in blocks, with work on each block while it is in the cache.
//
// Threads take panels of columns: each panel of B is packed once, and all rows of A go past it.
#pragma once

#include <cstdint>

#include <c10/util/FunctionRef.h>

#include "model/fused/block_product.hpp"
#include "model/kernels/epilogue.hpp"

namespace sidestream::model::fused {

enum class Orientation { kAsIs, kTransposed };

template <typename T>
struct LeftFactor {
  const T* data = nullptr;  // [m, k]; for bf16 and odd k there is one more column, of zeros
  std::int64_t stride = 0;
};

template <typename T>
struct RightFactor {
  const T* data = nullptr;  // [k, n], or [n, k] when transposed
  std::int64_t stride = 0;
  Orientation orientation = Orientation::kAsIs;
};

struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
};

// Where a tile lies in the product. A column belongs to one thread, and its tiles come in the order
// of rows.
struct TilePlace {
  std::int64_t row = 0, column = 0;
};
using Epilogue = c10::function_ref<void(const kernels::Tile&, TilePlace)>;

template <typename T>
void product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
             Epilogue epilogue);

// x^T as a left factor: x [rows, columns] -> [columns, rows rounded up], with zeros in between.
struct Transposed {
  torch::Tensor storage;
  std::int64_t stride = 0;
};
template <typename T>
Transposed transposed_left(const T* x, std::int64_t stride, std::int64_t rows,
                           std::int64_t columns);

}  // namespace sidestream::model::fused
