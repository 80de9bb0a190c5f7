#include "model/fused/widened_product.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

#include "core/base/multiple.hpp"
#include "model/fused/blocked_product.hpp"
#include "model/fused/left_parts.hpp"
#include "model/kernels/pack.hpp"

namespace sidestream::model::fused {
namespace {

using kernels::PanelLayout;

constexpr std::int64_t kRowRun = 256;           // of A in fp32, beside their part of C
constexpr std::int64_t kWidest = 256;           // columns of a panel
constexpr std::int64_t kPackedBytes = 1 << 20;  // of a panel

// Some columns of B.
template <typename T>
struct Panel {
  const T* data = nullptr;
  std::int64_t stride = 0;
  PanelLayout layout = PanelLayout::kRows;
  torch::Tensor storage = {};  // of a packed one
};

template <typename T>
class WidenedProduct {
 public:
  WidenedProduct(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                 Epilogue epilogue)
      : shape_(shape),
        a_(parts_of(a, {.rows = shape.m, .columns = shape.k}, shape.k)),
        b_(b),
        epilogue_(epilogue),
        width_(panel_width(shape.n, widest())) {}

  void run() const {
    at::parallel_for(0, (shape_.n + width_ - 1) / width_, 1,
                     [&](std::int64_t begin, std::int64_t end) {
                       const torch::Tensor left = scratch<float>(kRowRun * kernels::kWidenedStride);
                       const torch::Tensor tile = scratch<float>(kRowRun * width_);
                       for (std::int64_t panel = begin; panel < end; ++panel)
                         multiply_panel(panel * width_, data_of<float>(left), data_of<float>(tile));
                       kernels::finish_stores_past_caches();  // of an epilogue that has some
                     });
  }

 private:
  bool packs() const { return b_.orientation == Orientation::kTransposed; }
  std::int64_t depth() const { return packs() ? core::rounded_up(shape_.k, 2) : shape_.k; }

  std::int64_t widest() const {
    if (!packs()) return kWidest;
    const std::int64_t fits = kPackedBytes / (depth() * static_cast<std::int64_t>(sizeof(T)));
    return std::clamp(fits / kColumnStep * kColumnStep, kColumnStep, kWidest);
  }

  Panel<T> panel_at(std::int64_t column, std::int64_t columns) const {
    if (!packs()) return {.data = b_.data + column, .stride = b_.stride};
    Panel<T> panel{
        .stride = width_, .layout = PanelLayout::kPacked, .storage = scratch<T>(depth() * width_)};
    kernels::pack_transposed(b_.data + column * b_.stride, b_.stride,
                             {.k = shape_.k, .n = columns, .padded_k = depth(), .width = width_},
                             data_of<T>(panel.storage));
    panel.data = data_of<T>(panel.storage);
    return panel;
  }

  void multiply_panel(std::int64_t column, float* left, float* tile) const {
    const std::int64_t columns = std::min(width_, shape_.n - column);
    const Panel<T> panel = panel_at(column, columns);
    for (std::int64_t row = 0; row < shape_.m; row += kRowRun) {
      const std::int64_t rows = std::min(kRowRun, shape_.m - row);
      for (std::int64_t k = 0; k < depth(); k += kernels::kWidenedDepth)
        multiply_part(panel, {.m = rows, .n = columns, .k = k}, a_.data + row * a_.stride, left,
                      tile);
      for (std::int64_t first = 0; first < rows; first += kBlockRows)
        epilogue_({.data = tile + first * width_,
                   .stride = width_,
                   .rows = std::min(kBlockRows, rows - first),
                   .columns = columns},
                  {.row = row + first, .column = column});
    }
  }

  // part.k: where it begins.
  void multiply_part(const Panel<T>& panel, const ProductShape& part, const T* a, float* left,
                     float* tile) const {
    const std::int64_t k = std::min(kernels::kWidenedDepth, depth() - part.k);
    kernels::widen_rows(a + part.k, a_.stride, part.m, k, left);
    kernels::multiply_part(
        kernels::PartProduct<T>{.m = part.m,
                                .n = part.n,
                                .k = k,
                                .a = left,
                                .b = panel.data + part.k * panel.stride,
                                .b_stride = panel.stride,
                                .layout = panel.layout,
                                .c = tile,
                                .c_stride = width_,
                                .accumulate = part.k > 0 ? Accumulate::kYes : Accumulate::kNo});
  }

  ProductShape shape_;
  LeftParts<T> a_;  // one part
  RightFactor<T> b_;
  Epilogue epilogue_;
  std::int64_t width_;
};

}  // namespace

template <typename T>
void widened_product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                     Epilogue epilogue) {
  WidenedProduct<T>(shape, a, b, epilogue).run();
}

template void widened_product(const ProductShape&, const LeftFactor<core::BFloat16>&,
                              const RightFactor<core::BFloat16>&, Epilogue);

}  // namespace sidestream::model::fused
