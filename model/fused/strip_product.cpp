#include "model/fused/strip_product.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

#include "model/fused/blocked_product.hpp"
#include "model/fused/few_rows_product.hpp"
#include "model/fused/left_parts.hpp"
#include "model/kernels/dot_product.hpp"

namespace sidestream::model::fused {
namespace {

using core::BFloat16;
using kernels::kStripColumns;

constexpr std::int64_t kDeepest = 768;         // what blocked_product() does in one part, too
constexpr std::int64_t kRowBytes = 128 << 10;  // of A, with a panel in a second-level cache

class StripProducts {
 public:
  StripProducts(const ProductShape& shape, const LeftParts<BFloat16>& a,
                const RightFactor<BFloat16>& b, const StripTarget& target)
      : shape_(shape),
        a_(a),
        b_(b),
        target_(target),
        past_caches_(target.caches == Caches::kPast && kernels::begin_at_lines(target.rows)),
        rows_(
            std::max(kRowBytes / (a.depth * std::int64_t{sizeof(BFloat16)}) / kernels::kDotTileRows,
                     std::int64_t{1}) *
            kernels::kDotTileRows) {}

  // The columns from `column` on, which lie in `strips` then.
  void run(std::int64_t column, std::int64_t columns, BFloat16* strips) const {
    const bool in_passing = packs_in_passing(shape_, b_) && !past_caches_;
    const std::int64_t whole = in_passing ? columns / kStripColumns * kStripColumns : 0;
    for (std::int64_t strip = 0; strip < whole; strip += kStripColumns)
      pack_and_multiply(column + strip, strips);
    if (whole < columns) pack_first(column + whole, columns - whole, strips);
  }

 private:
  void pack_and_multiply(std::int64_t column, BFloat16* strip) const {
    const BFloat16* const columns = b_.data + column;
    const bool has_later = column + 2 * kStripColumns <= shape_.n;
    kernels::pack_and_multiply_strip(rows_from(0, column, shape_.m),
                                     {.rows = columns,
                                      .stride = b_.stride,
                                      .strip = strip,
                                      .later = has_later ? columns + kStripColumns : nullptr},
                                     target_at({.column = column}));
  }

  void pack_first(std::int64_t column, std::int64_t columns, BFloat16* strips) const {
    pack(column, columns, strips);
    for (std::int64_t row = 0; row < shape_.m; row += rows_) {
      for (std::int64_t strip = 0; strip < columns; strip += kStripColumns)
        multiply({.row = row, .column = column + strip}, strips + strip * a_.depth,
                 std::min(kStripColumns, columns - strip));
    }
  }

  void pack(std::int64_t column, std::int64_t columns, BFloat16* strips) const {
    const kernels::StripShape shape{.k = shape_.k, .n = columns, .padded_k = a_.depth};
    if (b_.orientation == Orientation::kAsIs)
      return kernels::pack_strips(b_.data + column, b_.stride, shape, strips);
    kernels::pack_strips_transposed(b_.data + column * b_.stride, b_.stride, shape, strips);
  }

  void multiply(const TilePlace& at, const BFloat16* strip, std::int64_t columns) const {
    kernels::StripProduct product =
        rows_from(at.row, at.column, std::min(rows_, shape_.m - at.row));
    product.strip = strip;
    product.columns = columns;
    const kernels::Rows<BFloat16> out = target_at(at);
    if (past_caches_ && columns == kStripColumns)
      return kernels::multiply_strip_past_caches(product, out);
    kernels::multiply_strip(product, out);
  }

  kernels::StripProduct rows_from(std::int64_t row, std::int64_t column, std::int64_t rows) const {
    return {.m = rows,
            .k = a_.depth,
            .a = a_.data + row * a_.stride,
            .a_stride = a_.stride,
            .bias = target_.bias == nullptr ? nullptr : target_.bias + column};
  }

  kernels::Rows<BFloat16> target_at(const TilePlace& at) const {
    const kernels::Rows<BFloat16>& all = target_.rows;
    return {all.data + at.row * all.stride + at.column, all.stride};
  }

  ProductShape shape_;
  LeftParts<BFloat16> a_;  // one part
  RightFactor<BFloat16> b_;
  StripTarget target_;
  bool past_caches_;
  std::int64_t rows_;  // of A that a panel passes at a time
};

}  // namespace

bool strips_pay(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                const RightFactor<BFloat16>& b) {
  return kernels::has_fast_dot_products() && shape.k <= kDeepest && a.panels.width == 0 &&
         b.panels.width == 0;
}

void strip_product(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                   const RightFactor<BFloat16>& b, const StripTarget& target) {
  TORCH_INTERNAL_ASSERT(shape.m > 0 && shape.n > 0 && shape.k > 0);
  const std::int64_t depth = (shape.k + 1) / 2 * 2;  // pairs
  const LeftParts<BFloat16> left = parts_of(a, {.rows = shape.m, .columns = shape.k}, depth);
  const StripProducts products(shape, left, b, target);
  const std::int64_t width = panel_width(shape.n, kMaxPanelWidth);
  at::parallel_for(0, (shape.n + width - 1) / width, 1, [&](std::int64_t begin, std::int64_t end) {
    const torch::Tensor strips = scratch<BFloat16>(depth * width);
    for (std::int64_t panel = begin; panel < end; ++panel)
      products.run(panel * width, std::min(width, shape.n - panel * width),
                   data_of<BFloat16>(strips));
    kernels::finish_stores_past_caches();
  });
}

}  // namespace sidestream::model::fused
