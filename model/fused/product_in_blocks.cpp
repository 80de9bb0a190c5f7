#include "model/fused/product_in_blocks.hpp"

#include <array>

#include "model/fused/blocked_product.hpp"
#include "model/fused/few_rows_product.hpp"
#include "model/fused/float_strip_product.hpp"
#include "model/fused/strip_product.hpp"
#include "model/fused/widened_product.hpp"
#include "model/kernels/pack.hpp"

namespace sidestream::model::fused {

using core::BFloat16;

namespace {

constexpr std::int64_t kFlat = 256;  // k so small that a wider panel fits the same cache
constexpr std::int64_t kWidePanel = 768;
constexpr std::int64_t kFarBytes = 2 << 20;  // as many as a second-level cache holds

// Tiles have at most `widest` columns.
template <typename T>
void product_of(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                std::int64_t widest, Epilogue epilogue) {
  const bool in_panels = a.panels.width != 0 || b.panels.width != 0;
  if (kernels::has_amd_avx2() && !in_panels)
    return float_strip_product(shape, a, b, widest, epilogue);
  if constexpr (sizeof(T) == 2) {
    if (!has_bf16_units()) return widened_product(shape, a, b, epilogue);
    if (few_rows_pay(shape, a, b)) return few_rows_product(shape, a, b, epilogue);
  }
  blocked_product(shape, a, b, widest, epilogue);
}

// Of products whose tiles need not lie in panels (best_panels()).
std::int64_t widest_panel(std::int64_t k) { return k <= kFlat ? kWidePanel : kMaxPanelWidth; }

Orientation turned(Orientation orientation) {
  return orientation == Orientation::kAsIs ? Orientation::kTransposed : Orientation::kAsIs;
}

// C = A B, or C^T = B^T A^T: a left factor goes in as it lies, a right one has to be packed, and
// what lies the other way round costs twice as much to move.
bool other_way_round_is_cheaper(const ProductShape& shape, Orientation a, Orientation b) {
  const auto left = static_cast<double>(shape.m * shape.k);
  const auto right = static_cast<double>(shape.n * shape.k);
  const auto out = static_cast<double>(shape.m * shape.n);
  const bool a_as_is = a == Orientation::kAsIs, b_as_is = b == Orientation::kAsIs;
  const double this_way = (a_as_is ? 0 : left) + (b_as_is ? 0.5 : 1) * right;
  const double other_way = (b_as_is ? right : 0) + (a_as_is ? 1 : 0.5) * left + 0.5 * out;
  return other_way < this_way;
}

// `out` is where the tile's first element goes; its columns become rows.
void store_turned(const kernels::Tile& tile, const kernels::Rows<BFloat16>& out) {
  // Bytes, which nobody clears before they are written.
  alignas(64) std::array<std::byte, static_cast<std::size_t>(kBlockRows * kWidePanel) * 2> storage;
  auto* const rounded = reinterpret_cast<BFloat16*>(storage.data());
  kernels::store(tile, kernels::Rows<BFloat16>{rounded, tile.columns});
  kernels::transpose_into(rounded, tile.columns, {.rows = tile.rows, .columns = tile.columns},
                          out.data, out.stride);
}

void store_turned(const kernels::Tile& tile, const kernels::Rows<float>& out) {
  kernels::transpose_into(tile.data, tile.stride, {.rows = tile.rows, .columns = tile.columns},
                          out.data, out.stride);
}

bool can_be_turned(const ProductShape& shape, const kernels::Rows<BFloat16>& out) {
  return shape.k % 2 == 0 && reinterpret_cast<std::uintptr_t>(out.data) % 4 == 0 &&
         out.stride % 2 == 0;  // whole words
}

bool can_be_turned(const ProductShape& /*shape*/, const kernels::Rows<float>& /*out*/) {
  return true;
}

template <typename T>
void product_other_way_round(const ProductShape& shape, const LeftFactor<T>& a,
                             const RightFactor<T>& b, const kernels::Rows<T>& out) {
  product_of<T>({.m = shape.n, .n = shape.m, .k = shape.k},
                {.data = b.data,
                 .stride = b.stride,
                 .orientation = turned(b.orientation),
                 .panels = b.panels},
                {.data = a.data,
                 .stride = a.stride,
                 .orientation = turned(a.orientation),
                 .panels = a.panels},
                widest_panel(shape.k), [&](const kernels::Tile& tile, TilePlace at) {
                  store_turned(tile, {out.data + at.column * out.stride + at.row, out.stride});
                });
}

}  // namespace

template <typename T>
void product_in_blocks(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                       Epilogue epilogue) {
  product_of(shape, a, b, kMaxPanelWidth, epilogue);
}

template <typename T>
void product_in_blocks_into(const ProductShape& shape, const LeftFactor<T>& a,
                            const RightFactor<T>& b, kernels::Rows<T> out, Existing existing,
                            NextRead next_read) {
  if (existing == Existing::kReplace && can_be_turned(shape, out) &&
      other_way_round_is_cheaper(shape, a.orientation, b.orientation)) {
    return product_other_way_round(shape, a, b, out);
  }
  const bool far =
      next_read == NextRead::kLater && shape.m * shape.n * std::int64_t{sizeof(T)} >= kFarBytes;
  if constexpr (sizeof(T) == 2) {
    if (existing == Existing::kReplace && strips_pay(shape, a, b))
      return strip_product(shape, a, b,
                           {.rows = out, .caches = far ? Caches::kPast : Caches::kThrough});
  }
  product_of<T>(shape, a, b, widest_panel(shape.k), [&](const kernels::Tile& tile, TilePlace at) {
    const kernels::Rows<T> target{out.data + at.row * out.stride + at.column, out.stride};
    if (existing == Existing::kAdd) return kernels::add(tile, target);
    far ? kernels::store_past_caches(tile, target) : kernels::store(tile, target);
  });
}

template void product_in_blocks(const ProductShape&, const LeftFactor<float>&,
                                const RightFactor<float>&, Epilogue);
template void product_in_blocks_into(const ProductShape&, const LeftFactor<float>&,
                                     const RightFactor<float>&, kernels::Rows<float>, Existing,
                                     NextRead);
template void product_in_blocks(const ProductShape&, const LeftFactor<BFloat16>&,
                                const RightFactor<BFloat16>&, Epilogue);
template void product_in_blocks_into(const ProductShape&, const LeftFactor<BFloat16>&,
                                     const RightFactor<BFloat16>&, kernels::Rows<BFloat16>,
                                     Existing, NextRead);

}  // namespace sidestream::model::fused
