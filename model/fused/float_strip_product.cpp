#include "model/fused/float_strip_product.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

#include "core/base/multiple.hpp"
#include "model/fused/blocked_product.hpp"
#include "model/fused/left_parts.hpp"
#include "model/kernels/float_strip.hpp"

namespace sidestream::model::fused {
namespace {

using kernels::kFloatStripColumns;

constexpr std::int64_t kRowRun = 192;         // of A: a part of them in a second-level cache
constexpr std::int64_t kSumsBytes = 4 << 20;  // of deep products, in the last-level cache
constexpr std::int64_t kPageElements = 4096 / static_cast<std::int64_t>(sizeof(float));

// Columns of the product. Parts of k go by one after the other, each with all rows whose sums are
// kept; where there is one part only, these are as few as stay near for the epilogue.
template <typename T>
class StripPanel {
 public:
  StripPanel(const ProductShape& shape, const LeftParts<T>& a, const RightFactor<T>& b,
             std::int64_t width)
      : shape_(shape),
        a_(a),
        b_(b),
        width_(width),
        rows_(rows_of_sums()),
        copies_rows_(sizeof(T) == 2 || a.stride % kPageElements == 0),
        strips_(scratch<float>(a.depth * width)),
        left_(scratch<float>(copies_rows_ ? kRowRun * stride_of_copy() : 0)),
        sums_(scratch<float>(rows_ * width)) {}

  void run(std::int64_t column, Epilogue epilogue) {
    const std::int64_t columns = std::min(width_, shape_.n - column);
    for (std::int64_t row = 0; row < shape_.m; row += rows_) {
      const std::int64_t rows = std::min(rows_, shape_.m - row);
      for (std::int64_t k = 0; k < shape_.k; k += a_.depth) {
        if (row == 0 || !is_one_part()) pack(column, columns, k);
        add_part(row, rows, columns, k);
      }
      for (std::int64_t block = 0; block < rows; block += kBlockRows)
        epilogue({.data = data_of<float>(sums_) + block * width_,
                  .stride = width_,
                  .rows = std::min(kBlockRows, rows - block),
                  .columns = columns},
                 {.row = row + block, .column = column});
    }
  }

 private:
  bool is_one_part() const { return a_.depth >= shape_.k; }
  std::int64_t depth_at(std::int64_t k) const { return std::min(a_.depth, shape_.k - k); }
  std::int64_t stride_of_copy() const { return a_.depth + kFloatStripColumns; }

  std::int64_t rows_of_sums() const {
    const std::int64_t fits = kSumsBytes / (width_ * static_cast<std::int64_t>(sizeof(float)));
    return std::min(shape_.m, is_one_part() ? kRowRun : fits / kRowRun * kRowRun);
  }

  void pack(std::int64_t column, std::int64_t columns, std::int64_t k) {
    const kernels::FloatStripsShape part{.k = depth_at(k), .n = columns};
    auto* const strips = data_of<float>(strips_);
    b_.orientation == Orientation::kAsIs
        ? kernels::pack_float_strips(b_.data + k * b_.stride + column, b_.stride, part, strips)
        : kernels::pack_float_strips_transposed(b_.data + column * b_.stride + k, b_.stride, part,
                                                strips);
  }

  void add_part(std::int64_t row, std::int64_t rows, std::int64_t columns, std::int64_t k) {
    for (std::int64_t first = 0; first < rows; first += kRowRun) {
      const kernels::Rows<const float> left =
          rows_of_a(row + first, std::min(kRowRun, rows - first), k);
      for (std::int64_t strip = 0; strip < columns; strip += kFloatStripColumns)
        kernels::multiply_float_strip({.m = std::min(kRowRun, rows - first),
                                       .k = depth_at(k),
                                       .a = left.data,
                                       .a_stride = left.stride,
                                       .strip = data_of<float>(strips_) + strip * depth_at(k),
                                       .columns = std::min(kFloatStripColumns, columns - strip),
                                       .c = data_of<float>(sums_) + first * width_ + strip,
                                       .c_stride = width_,
                                       .accumulate = k > 0 ? Accumulate::kYes : Accumulate::kNo});
    }
  }

  // fp32 as it lies; bf16, and rows whole pages apart, which would share few sets of the cache, by
  // way of a copy.
  kernels::Rows<const float> rows_of_a(std::int64_t row, std::int64_t rows, std::int64_t k) {
    const T* const a = a_.data + k / a_.depth * a_.part_step + row * a_.stride;
    if constexpr (sizeof(T) == 4) {
      if (!copies_rows_) return {a, a_.stride};
    }
    auto* const copy = data_of<float>(left_);
    kernels::widen_rows(a, a_.stride, rows, depth_at(k), copy, stride_of_copy());
    return {copy, stride_of_copy()};
  }

  ProductShape shape_;
  LeftParts<T> a_;
  RightFactor<T> b_;
  std::int64_t width_, rows_;
  bool copies_rows_;
  torch::Tensor strips_, left_, sums_;
};

// Parts of about the same depth, whole lines.
std::int64_t depth_of_strips(std::int64_t k) {
  const std::int64_t parts = core::divided_up(k, kernels::kFloatStripDepth);
  return core::rounded_up(core::divided_up(k, parts), std::int64_t{16});
}

}  // namespace

template <typename T>
void float_strip_product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                         std::int64_t widest, Epilogue epilogue) {
  TORCH_INTERNAL_ASSERT(shape.m > 0 && shape.n > 0 && shape.k > 0);
  TORCH_INTERNAL_ASSERT(a.panels.width == 0 && b.panels.width == 0);
  const LeftParts<T> left =
      parts_of(a, {.rows = shape.m, .columns = shape.k}, depth_of_strips(shape.k));
  const std::int64_t width = panel_width(shape.n, widest);
  at::parallel_for(0, (shape.n + width - 1) / width, 1, [&](std::int64_t begin, std::int64_t end) {
    StripPanel<T> panel(shape, left, b, width);
    for (std::int64_t i = begin; i < end; ++i) panel.run(i * width, epilogue);
    kernels::finish_stores_past_caches();  // of an epilogue that has some
  });
}

template void float_strip_product(const ProductShape&, const LeftFactor<float>&,
                                  const RightFactor<float>&, std::int64_t, Epilogue);
template void float_strip_product(const ProductShape&, const LeftFactor<core::BFloat16>&,
                                  const RightFactor<core::BFloat16>&, std::int64_t, Epilogue);

}  // namespace sidestream::model::fused
