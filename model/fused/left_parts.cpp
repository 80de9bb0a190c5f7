#include "model/fused/left_parts.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

#include "core/base/multiple.hpp"

namespace sidestream::model::fused {
namespace {

std::int64_t next_panel(std::int64_t column, std::int64_t width) {
  return (column / width + 1) * width;
}

// [rows, columns] -> parts of [columns, depth], padded with zeros to an odd number of cache lines:
// rows a power of two apart would share a few sets of the cache.
template <typename T>
LeftParts<T> transposed(const LeftFactor<T>& x, const kernels::MatrixShape& shape,
                        std::int64_t depth) {
  constexpr std::int64_t kColumnsAtOnce = 32;
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t padded_depth = (core::divided_up(depth, kLine) | 1) * kLine;
  const std::int64_t part_step = shape.columns * padded_depth;
  const torch::Tensor storage = scratch<T>(core::divided_up(shape.rows, depth) * part_step);
  auto* target = data_of<T>(storage);
  at::parallel_for(0, shape.columns, kColumnsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t column = begin, next = 0; column < end; column = next) {
      next = x.panels.width == 0 ? end : std::min(end, next_panel(column, x.panels.width));
      for (std::int64_t row = 0; row < shape.rows; row += depth) {
        kernels::transpose(x.data + row * x.stride + x.panels.offset(column), x.stride,
                           {.rows = std::min(depth, shape.rows - row), .columns = next - column},
                           target + row / depth * part_step + column * padded_depth, padded_depth);
      }
    }
  });
  return {.data = target,
          .stride = padded_depth,
          .part_step = part_step,
          .depth = depth,
          .storage = storage};
}

template <typename T>
LeftParts<T> as_it_lies(const LeftFactor<T>& a, std::int64_t depth) {
  const bool in_panels = a.panels.width != 0;
  return {.data = a.data,
          .stride = a.stride,
          .part_step = in_panels ? a.panels.step : depth,
          .depth = depth};
}

}  // namespace

template <typename T>
LeftParts<T> parts_of(const LeftFactor<T>& a, const kernels::MatrixShape& shape,
                      std::int64_t depth) {
  if (a.orientation == Orientation::kAsIs) return as_it_lies(a, depth);
  return transposed(a, {.rows = shape.columns, .columns = shape.rows}, depth);
}

template LeftParts<float> parts_of(const LeftFactor<float>&, const kernels::MatrixShape&,
                                   std::int64_t);
template LeftParts<core::BFloat16> parts_of(const LeftFactor<core::BFloat16>&,
                                            const kernels::MatrixShape&, std::int64_t);

}  // namespace sidestream::model::fused
