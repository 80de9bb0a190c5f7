// Whole matrix products, with work on each tile while it is in the cache.
//
// bf16 goes through our loops (product_in_blocks.hpp; strip_product.hpp where nothing but a bias
// comes on the way, few_rows_product.hpp where few rows pass, float_strip_product.hpp where AVX2 is
// all there is). fp32 goes through tiles of bf16
// where the processor has AMX (split_product.hpp), through blocks where those are faster than
// LibTorch's mm (blocks_beat_mm()), else through that, a run of rows at a time.
#pragma once

#include <cstdint>

#include <c10/util/FunctionRef.h>

#include "model/fused/block_product.hpp"
#include "model/kernels/epilogue.hpp"

namespace sidestream::model::fused {

enum class Orientation { kAsIs, kTransposed };

// A matrix whose columns lie in panels: `width` of them side by side in every row, the next ones
// `step` elements on. What a product writes a tile at a time and another one reads lies best so:
// all of it is written and read in order. Width 0: all columns side by side.
struct Panels {
  std::int64_t width = 0, step = 0;

  // Elements from the first to this column of a row.
  std::int64_t offset(std::int64_t column) const {
    return width == 0 ? column : column / width * step + column % width;
  }
};

// One factor of a product may lie in panels, where best_panels() says so.
template <typename T>
struct LeftFactor {
  const T* data = nullptr;  // [m, k], or [k, m] when transposed
  std::int64_t stride = 0;
  Orientation orientation = Orientation::kAsIs;
  Panels panels = {};
};

template <typename T>
struct RightFactor {
  const T* data = nullptr;  // [k, n], or [n, k] when transposed
  std::int64_t stride = 0;
  Orientation orientation = Orientation::kAsIs;
  Panels panels = {};
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

// How an [m, n] product that stays between products lies best.
template <typename T>
Panels best_panels(std::int64_t m, std::int64_t n);

// For bf16 and odd k a left factor as it is has one more column, of zeros.
template <typename T>
void product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
             Epilogue epilogue);

// The product plus bias [n] in every row, to where it belongs. Odd k: as for product().
template <typename T>
void product_with_bias(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                       const T* bias, kernels::Rows<T> out);

enum class Existing { kReplace, kAdd };

// When the product is read: gradients of weights are once the whole backward pass has gone by.
// Large ones then are written past the caches, which would read them first from memory, and drop
// what is needed soon for them.
enum class NextRead { kSoon, kLater };

// The product alone, to where it belongs.
template <typename T>
void product_into(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                  kernels::Rows<T> out, Existing existing = Existing::kReplace,
                  NextRead next_read = NextRead::kSoon);

}  // namespace sidestream::model::fused
