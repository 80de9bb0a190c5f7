#include "model/fused/few_rows_product.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

#include "model/fused/blocked_product.hpp"
#include "model/kernels/dot_product.hpp"

namespace sidestream::model::fused {
namespace {

using core::BFloat16;
using kernels::kStripColumns;

constexpr std::int64_t kPanelColumns = 192;  // whose sums of all rows stay in a second-level cache

// Columns of the product whose sums are in the cache together.
class Panel {
 public:
  Panel(const ProductShape& shape, const LeftFactor<BFloat16>& a, const RightFactor<BFloat16>& b)
      : shape_(shape),
        a_(a),
        b_(b),
        depth_(depth_of_part<BFloat16>(shape.k)),
        sums_(scratch<float>(shape.m * kPanelColumns)),
        strip_(scratch<BFloat16>(depth_ * kStripColumns)) {}

  void run(std::int64_t column, Epilogue epilogue) {
    columns_ = std::min(kPanelColumns, shape_.n - column);
    for (std::int64_t k = 0; k < shape_.k; k += depth_) {
      for (std::int64_t strip = 0; strip < columns_; strip += kStripColumns)
        add_strip(k, column, strip);
    }
    for (std::int64_t row = 0; row < shape_.m; row += kBlockRows) {
      epilogue({.data = data_of<float>(sums_) + row * kPanelColumns,
                .stride = kPanelColumns,
                .rows = std::min(kBlockRows, shape_.m - row),
                .columns = columns_},
               {.row = row, .column = column});
    }
  }

 private:
  // Where the columns after this strip's begin: beside them, in the next rows, in the next panel.
  const BFloat16* after(std::int64_t k, std::int64_t column, std::int64_t strip) const {
    const std::int64_t next = strip + kStripColumns;
    if (next + kStripColumns <= columns_) return b_.data + k * b_.stride + column + next;
    if (next < columns_) return nullptr;  // not a whole strip
    const std::int64_t depth = std::min(depth_, shape_.k - k);
    if (k + 2 * depth <= shape_.k) return b_.data + (k + depth) * b_.stride + column;
    const std::int64_t panel = column + kPanelColumns;
    return k + depth == shape_.k && panel + kStripColumns <= shape_.n ? b_.data + panel : nullptr;
  }

  void add_strip(std::int64_t k, std::int64_t column, std::int64_t strip) {
    const std::int64_t depth = std::min(depth_, shape_.k - k);
    const std::int64_t count = std::min(kStripColumns, columns_ - strip);
    BFloat16* const packed = data_of<BFloat16>(strip_);
    const BFloat16* const rows_of_b = b_.data + k * b_.stride + column + strip;
    const kernels::StripProduct product{
        .m = shape_.m, .k = depth, .a = a_.data + k, .a_stride = a_.stride, .strip = packed};
    const kernels::StripSums sums{.rows = {data_of<float>(sums_) + strip, kPanelColumns},
                                  .accumulate = k > 0 ? Accumulate::kYes : Accumulate::kNo};
    if (count == kStripColumns) {
      kernels::pack_and_multiply_strip(product,
                                       {.rows = rows_of_b,
                                        .stride = b_.stride,
                                        .strip = packed,
                                        .later = after(k, column, strip)},
                                       sums);
      return;
    }
    kernels::pack_strips(rows_of_b, b_.stride, {.k = depth, .n = count, .padded_k = depth}, packed);
    kernels::multiply_strip(product, sums);
  }

  ProductShape shape_;
  LeftFactor<BFloat16> a_;
  RightFactor<BFloat16> b_;
  std::int64_t depth_, columns_ = 0;
  torch::Tensor sums_, strip_;
};

}  // namespace

bool packs_in_passing(const ProductShape& shape, const RightFactor<BFloat16>& b) {
  constexpr std::int64_t kFewRows = 512;
  return shape.m <= kFewRows && shape.k % 2 == 0 && b.orientation == Orientation::kAsIs &&
         b.panels.width == 0;
}

bool few_rows_pay(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                  const RightFactor<BFloat16>& b) {
  return kernels::has_fast_dot_products() && packs_in_passing(shape, b) &&
         a.orientation == Orientation::kAsIs && a.panels.width == 0;
}

void few_rows_product(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                      const RightFactor<BFloat16>& b, Epilogue epilogue) {
  TORCH_INTERNAL_ASSERT(shape.m > 0 && shape.n > 0 && shape.k > 0);
  const std::int64_t panels = (shape.n + kPanelColumns - 1) / kPanelColumns;
  at::parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
    Panel panel(shape, a, b);
    for (std::int64_t i = begin; i < end; ++i) panel.run(i * kPanelColumns, epilogue);
    kernels::finish_stores_past_caches();  // of an epilogue that has some
  });
}

}  // namespace sidestream::model::fused
