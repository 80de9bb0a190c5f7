#include "model/fused/blocked_product.hpp"

#include <algorithm>
#include <type_traits>

#include <ATen/Parallel.h>

#include "core/base/multiple.hpp"
#include "model/fused/left_parts.hpp"
#include "model/kernels/pack.hpp"

namespace sidestream::model::fused {

using core::BFloat16;

namespace {

constexpr std::int64_t kSumsBytes = 768 << 10;     // with a part of a panel in a second-level cache
constexpr std::int64_t kPanelBytes = 5 << 18;      // a whole panel in a second-level cache
constexpr std::int64_t kKeptPanelBytes = 4 << 20;  // in the last-level cache
constexpr std::int64_t kFewRows = 1024;  // of A: a copy of the panel costs more than its far rows

template <typename T>
struct Depth {
  static constexpr std::int64_t kStep = sizeof(T) == 2 ? 2 : 1;  // bf16 is multiplied in pairs
  // Of a part: a block's rows of A stay in the first-level cache for all columns of the panel.
  static constexpr std::int64_t kPart = 1024 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kShallow =
      1536 / static_cast<std::int64_t>(sizeof(T));  // needs no parts
};

template <typename T>
void pack_panel(const RightFactor<T>& b, std::int64_t column, const kernels::PanelShape& shape,
                T* panel) {
  if (b.orientation == Orientation::kAsIs) {
    kernels::pack_rows(b.data + b.panels.offset(column), b.stride, shape, panel);
  } else {
    kernels::pack_transposed(b.data + column * b.stride, b.stride, shape, panel);
  }
}

// No part lies in two panels.
template <typename T>
std::int64_t depth_of_parts(const LeftFactor<T>& a, const RightFactor<T>& b, std::int64_t k) {
  if (a.orientation == Orientation::kAsIs && a.panels.width != 0) return a.panels.width;
  if (b.orientation == Orientation::kTransposed && b.panels.width != 0) return b.panels.width;
  return depth_of_part<T>(k);
}

// Columns of the product, a panel at a time. Where k is deep, sums of many rows stay in the cache
// while its parts go by.
template <typename T>
class PanelProduct {
 public:
  PanelProduct(const ProductShape& shape, const LeftParts<T>& a, const RightFactor<T>& b,
               std::int64_t width)
      : shape_(shape),
        a_(a),
        b_(b),
        width_(width),
        padded_k_(core::rounded_up(shape.k, Depth<T>::kStep)),
        depth_(a.depth),
        rows_(rows_of_sums()),
        as_it_lies_(multiplies_as_it_lies()),
        keeps_panel_(rows_ < shape.m && panel_bytes() <= kKeptPanelBytes),
        panel_(scratch<T>(as_it_lies_ ? 0 : (keeps_panel_ ? padded_k_ : depth_) * width)),
        sums_(scratch<float>(rows_ * width)) {}

  void run(std::int64_t column, Epilogue epilogue) {
    const std::int64_t columns = std::min(width_, shape_.n - column);
    for (std::int64_t row = 0; row < shape_.m; row += rows_) {
      const std::int64_t rows = std::min(rows_, shape_.m - row);
      for (std::int64_t k = 0; k < padded_k_; k += depth_)
        add_part({row, column}, rows, columns, k);
      for (std::int64_t block = 0; block < rows; block += kBlockRows) {
        epilogue({.data = data_of<float>(sums_) + block * width_,
                  .stride = width_,
                  .rows = std::min(kBlockRows, rows - block),
                  .columns = columns,
                  .ahead = rows_after(row + block)},
                 {.row = row + block, .column = column});
      }
    }
  }

 private:
  // Of A, what the block after the one from `row` on begins with; the next panel begins at the top.
  kernels::RowsAhead rows_after(std::int64_t row) const {
    const std::int64_t next = row + kBlockRows < shape_.m ? row + kBlockRows : 0;
    return {.data = a_.data + next * a_.stride,
            .stride_bytes = a_.stride * std::int64_t{sizeof(T)},
            .bytes = std::min(depth_, padded_k_) * std::int64_t{sizeof(T)},
            .rows = std::min(kBlockRows, shape_.m - next)};
  }

  std::int64_t panel_bytes() const { return padded_k_ * width_ * std::int64_t{sizeof(T)}; }

  std::int64_t rows_of_sums() const {
    if (depth_ == padded_k_ || panel_bytes() <= kPanelBytes) return kBlockRows;
    const std::int64_t fits = kSumsBytes / (width_ * std::int64_t{sizeof(float)});
    return std::min(fits / kBlockRows * kBlockRows, core::rounded_up(shape_.m, kBlockRows));
  }

  // bf16 is multiplied in pairs of rows, which pack_panel() makes; fp32 in the order of B.
  bool multiplies_as_it_lies() const {
    return std::is_same_v<T, float> && b_.orientation == Orientation::kAsIs && shape_.m <= kFewRows;
  }

  // Rows k to k + depth of B in the columns of the panel.
  kernels::Rows<const T> part_of_panel(TilePlace at, std::int64_t columns, std::int64_t k) {
    if (as_it_lies_) return {b_.data + b_.panels.offset(at.column) + k * b_.stride, b_.stride};
    T* part = data_of<T>(panel_) + (keeps_panel_ ? k * width_ : 0);
    const bool packed = at.row > 0 && (keeps_panel_ || depth_ == padded_k_);
    if (packed) return {part, width_};
    const std::int64_t depth = std::min(depth_, shape_.k - k);
    RightFactor<T> b = b_;
    b.data += b.orientation == Orientation::kAsIs ? k * b.stride : b.panels.offset(k);
    pack_panel(b, at.column,
               {.k = depth,
                .n = columns,
                .padded_k = core::rounded_up(depth, Depth<T>::kStep),
                .width = width_},
               part);
    return {part, width_};
  }

  void add_part(TilePlace at, std::int64_t rows, std::int64_t columns, std::int64_t k) {
    const kernels::Rows<const T> part = part_of_panel(at, columns, k);
    for (std::int64_t block = 0; block < rows; block += kBlockRows) {
      multiply(BlockProduct<T>{
          .m = std::min(kBlockRows, rows - block),
          .n = columns,
          .k = std::min(depth_, padded_k_ - k),
          .a = a_.data + k / depth_ * a_.part_step + (at.row + block) * a_.stride,
          .a_stride = a_.stride,
          .b = part.data,
          .b_stride = part.stride,
          .c = data_of<float>(sums_) + block * width_,
          .c_stride = width_,
          .accumulate = k > 0 ? kernels::Accumulate::kYes : kernels::Accumulate::kNo});
    }
  }

  ProductShape shape_;
  LeftParts<T> a_;
  RightFactor<T> b_;
  std::int64_t width_, padded_k_, depth_, rows_;
  bool as_it_lies_, keeps_panel_;
  torch::Tensor panel_, sums_;
};

}  // namespace

template <typename T>
std::int64_t depth_of_part(std::int64_t k) {
  const std::int64_t padded_k = core::rounded_up(k, Depth<T>::kStep);
  return padded_k <= Depth<T>::kShallow ? padded_k : Depth<T>::kPart;
}
template std::int64_t depth_of_part<float>(std::int64_t);
template std::int64_t depth_of_part<BFloat16>(std::int64_t);

std::int64_t panel_width(std::int64_t columns, std::int64_t widest) {
  const std::int64_t panels =
      std::max<std::int64_t>((columns + widest - 1) / widest, at::get_num_threads());
  return core::rounded_up(core::divided_up(columns, panels), kColumnStep);
}

template <typename T>
void blocked_product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                     std::int64_t widest, Epilogue epilogue) {
  TORCH_INTERNAL_ASSERT(shape.m > 0 && shape.n > 0 && shape.k > 0);
  const LeftParts<T> left =
      parts_of(a, {.rows = shape.m, .columns = shape.k}, depth_of_parts(a, b, shape.k));
  const bool columns_in_panels = b.orientation == Orientation::kAsIs && b.panels.width != 0;
  const std::int64_t width = columns_in_panels ? b.panels.width : panel_width(shape.n, widest);
  at::parallel_for(0, (shape.n + width - 1) / width, 1, [&](std::int64_t begin, std::int64_t end) {
    PanelProduct<T> panel(shape, left, b, width);
    for (std::int64_t i = begin; i < end; ++i) panel.run(i * width, epilogue);
    release_products<T>();
    kernels::finish_stores_past_caches();  // of an epilogue that has some
  });
}

template void blocked_product(const ProductShape&, const LeftFactor<float>&,
                              const RightFactor<float>&, std::int64_t, Epilogue);
template void blocked_product(const ProductShape&, const LeftFactor<BFloat16>&,
                              const RightFactor<BFloat16>&, std::int64_t, Epilogue);

}  // namespace sidestream::model::fused
