// Whole matrix products of blocks that the processor multiplies fastest (block_product.hpp):
// threads take panels of columns, each panel of the right factor is packed once, and all rows of
// the left factor go past it.
#pragma once

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

constexpr std::int64_t kBlockRows = 64;  // of a tile, at most
constexpr std::int64_t kMaxPanelWidth =
    384;                                  // of a panel between products (best_panels()), at most
constexpr std::int64_t kColumnStep = 32;  // widths are multiples of it

// At least one panel a thread, all of about the same width.
std::int64_t panel_width(std::int64_t columns, std::int64_t widest);

// k goes by in parts of so many where it is deep: rows of A and the panel would push each other out
// of the cache.
template <typename T>
std::int64_t depth_of_part(std::int64_t k);

// Tiles have at most `widest` columns. m, n and k are not 0.
template <typename T>
void blocked_product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                     std::int64_t widest, Epilogue epilogue);

}  // namespace sidestream::model::fused
