#include "model/fused/product.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

#include "model/kernels/pack.hpp"

namespace sidestream::model::fused {
namespace {

constexpr std::int64_t kRowBlock = 64;
constexpr std::int64_t kPanelBytes = 1 << 20;  // half of a second-level cache
constexpr std::int64_t kMaxPanelWidth = 256;
constexpr std::int64_t kColumnStep = 32;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// As wide as the cache allows, but at least one panel a thread, all of about the same width.
std::int64_t panel_width(const ProductShape& shape, std::int64_t element_bytes) {
  const std::int64_t fits = kPanelBytes / (shape.k * element_bytes) / kColumnStep * kColumnStep;
  const std::int64_t widest = std::clamp(fits, kColumnStep, kMaxPanelWidth);
  const std::int64_t panels =
      std::max<std::int64_t>((shape.n + widest - 1) / widest, at::get_num_threads());
  return round_up((shape.n + panels - 1) / panels, kColumnStep);
}

template <typename T>
void pack_panel(const RightFactor<T>& b, std::int64_t column, const kernels::PanelShape& shape,
                T* panel) {
  if (b.orientation == Orientation::kAsIs) {
    kernels::pack_rows(b.data + column, b.stride, shape, panel);
  } else {
    kernels::pack_transposed(b.data + column * b.stride, b.stride, shape, panel);
  }
}

}  // namespace

template <typename T>
void product(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
             Epilogue epilogue) {
  const std::int64_t width = panel_width(shape, sizeof(T)),
                     padded_k = round_up(shape.k, sizeof(T) == 2 ? 2 : 1);
  at::parallel_for(0, (shape.n + width - 1) / width, 1, [&](std::int64_t begin, std::int64_t end) {
    const torch::Tensor panel_storage = scratch<T>(padded_k * width);
    const torch::Tensor tile_storage = scratch<float>(kRowBlock * width);
    T* panel = data_of<T>(panel_storage);
    float* tile = data_of<float>(tile_storage);
    for (std::int64_t column = begin * width; column < std::min(end * width, shape.n);
         column += width) {
      const std::int64_t columns = std::min(width, shape.n - column);
      pack_panel(b, column, {.k = shape.k, .n = columns, .padded_k = padded_k, .width = width},
                 panel);
      for (std::int64_t row = 0; row < shape.m; row += kRowBlock) {
        const std::int64_t rows = std::min(kRowBlock, shape.m - row);
        multiply(BlockProduct<T>{.m = rows,
                                 .n = columns,
                                 .k = padded_k,
                                 .a = a.data + row * a.stride,
                                 .a_stride = a.stride,
                                 .b = panel,
                                 .b_stride = width,
                                 .c = tile,
                                 .c_stride = width});
        epilogue({.data = tile, .stride = width, .rows = rows, .columns = columns},
                 {.row = row, .column = column});
      }
    }
    release_products<T>();
  });
}

template <typename T>
Transposed transposed_left(const T* x, std::int64_t stride, std::int64_t rows,
                           std::int64_t columns) {
  // An odd number of cache lines: rows a power of two apart would share a few sets of the cache.
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t padded_rows = (((rows + kLine - 1) / kLine) | 1) * kLine;
  Transposed result{.storage = scratch<T>(columns * padded_rows), .stride = padded_rows};
  T* target = data_of<T>(result.storage);
  at::parallel_for(0, columns, kColumnStep, [&](std::int64_t begin, std::int64_t end) {
    kernels::transpose(x + begin, stride, {.rows = rows, .columns = end - begin},
                       target + begin * padded_rows, padded_rows);
  });
  return result;
}

template void product(const ProductShape&, const LeftFactor<float>&, const RightFactor<float>&,
                      Epilogue);
template void product(const ProductShape&, const LeftFactor<core::BFloat16>&,
                      const RightFactor<core::BFloat16>&, Epilogue);
template Transposed transposed_left(const float*, std::int64_t, std::int64_t, std::int64_t);
template Transposed transposed_left(const core::BFloat16*, std::int64_t, std::int64_t,
                                    std::int64_t);

}  // namespace sidestream::model::fused
