#include "model/fused/product.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

#include "model/fused/blocked_product.hpp"
#include "model/fused/product_in_blocks.hpp"
#include "model/fused/split_product.hpp"
#include "model/fused/strip_product.hpp"

namespace sidestream::model::fused {

using core::BFloat16;

namespace {

constexpr std::int64_t kRunBytes =
    4 << 20;  // of fp32 tiles: stays in the last-level cache, and packing pays off

// A factor as LibTorch sees it: [rows, columns] after its orientation.
template <typename Factor>
torch::Tensor view_of(const Factor& factor, std::int64_t rows, std::int64_t columns) {
  auto* data = const_cast<float*>(factor.data);
  if (factor.orientation == Orientation::kAsIs) {
    return at::from_blob(data, {rows, columns}, {factor.stride, 1}, at::TensorOptions(at::kFloat));
  }
  return at::from_blob(data, {rows, columns}, {1, factor.stride}, at::TensorOptions(at::kFloat));
}

}  // namespace

// Their width, which is that of parts of k, goes by the threads. Tiles of AMX add each product to
// what came before it, whatever the parts; blocks of dot products add a part when it is whole, and
// sums would differ with the threads. There panels bring nothing.
template <>
Panels best_panels<BFloat16>(std::int64_t m, std::int64_t n) {
  if (!kernels::has_amx() || !has_bf16_units() || n % kColumnStep != 0) return {};
  const std::int64_t width = panel_width(n, kMaxPanelWidth);
  return {.width = width, .step = m * width};
}

template <>
Panels best_panels<float>(std::int64_t /*m*/, std::int64_t /*n*/) {
  return {};
}

template <>
void product(const ProductShape& shape, const LeftFactor<BFloat16>& a,
             const RightFactor<BFloat16>& b, Epilogue epilogue) {
  product_in_blocks(shape, a, b, epilogue);
}

template <>
void product(const ProductShape& shape, const LeftFactor<float>& a, const RightFactor<float>& b,
             Epilogue epilogue) {
  if (splitting_pays(shape)) return split_product(shape, a, b, epilogue);
  if (blocks_beat_mm()) return product_in_blocks(shape, a, b, epilogue);
  const std::int64_t fits = kRunBytes / (shape.n * static_cast<std::int64_t>(sizeof(float)));
  // Whole blocks: a library's kernels take rows by the dozen, and leave the last ones to slower
  // code.
  const std::int64_t run =
      std::min(std::max(fits / kBlockRows, std::int64_t{1}) * kBlockRows, shape.m);
  const torch::NoGradGuard no_grad;
  const torch::Tensor tile = at::empty({run, shape.n}, at::kFloat);
  const torch::Tensor left = view_of(a, shape.m, shape.k), right = view_of(b, shape.k, shape.n);
  for (std::int64_t row = 0; row < shape.m; row += run) {
    const std::int64_t rows = std::min(run, shape.m - row);
    torch::Tensor out = tile.narrow(0, 0, rows);
    at::mm_out(out, left.narrow(0, row, rows), right);
    at::parallel_for(0, shape.n, kMaxPanelWidth, [&](std::int64_t begin, std::int64_t end) {
      epilogue({.data = data_of<float>(tile) + begin,
                .stride = shape.n,
                .rows = rows,
                .columns = end - begin},
               {.row = row, .column = begin});
    });
  }
}

template <typename T>
void product_with_bias(const ProductShape& shape, const LeftFactor<T>& a, const RightFactor<T>& b,
                       const T* bias, kernels::Rows<T> out) {
  if constexpr (sizeof(T) == 2) {
    if (strips_pay(shape, a, b)) return strip_product(shape, a, b, {.rows = out, .bias = bias});
  }
  product<T>(shape, a, b, [&](const kernels::Tile& tile, TilePlace at) {
    kernels::store_with_bias(
        tile, bias + at.column,
        kernels::Rows<T>{out.data + at.row * out.stride + at.column, out.stride});
  });
}

template void product_with_bias(const ProductShape&, const LeftFactor<float>&,
                                const RightFactor<float>&, const float*, kernels::Rows<float>);
template void product_with_bias(const ProductShape&, const LeftFactor<BFloat16>&,
                                const RightFactor<BFloat16>&, const BFloat16*,
                                kernels::Rows<BFloat16>);

template <>
void product_into(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                  const RightFactor<BFloat16>& b, kernels::Rows<BFloat16> out, Existing existing,
                  NextRead next_read) {
  product_in_blocks_into(shape, a, b, out, existing, next_read);
}

template <>
void product_into(const ProductShape& shape, const LeftFactor<float>& a,
                  const RightFactor<float>& b, kernels::Rows<float> out, Existing existing,
                  NextRead next_read) {
  if (splitting_pays(shape)) return split_product_into(shape, a, b, out, existing);
  if (blocks_beat_mm()) return product_in_blocks_into(shape, a, b, out, existing, next_read);
  const torch::NoGradGuard no_grad;
  const torch::Tensor left = view_of(a, shape.m, shape.k), right = view_of(b, shape.k, shape.n);
  torch::Tensor target =
      at::from_blob(out.data, {shape.m, shape.n}, {out.stride, 1}, at::TensorOptions(at::kFloat));
  existing == Existing::kReplace ? at::mm_out(target, left, right) : target.addmm_(left, right);
}

}  // namespace sidestream::model::fused
