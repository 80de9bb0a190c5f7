#include "model/fused/product.hpp"

#include <algorithm>
#include <array>

#include <ATen/Parallel.h>

#include "model/fused/split_product.hpp"
#include "model/fused/widened_product.hpp"
#include "model/kernels/pack.hpp"

namespace sidestream::model::fused {

using core::BFloat16;

namespace {

constexpr std::int64_t kRowBlock = 64;
constexpr std::int64_t kPanelBytes = 1 << 20;  // half of a second-level cache
constexpr std::int64_t kMaxPanelWidth = 256;
constexpr std::int64_t kColumnStep = 32;
constexpr std::int64_t kRunBytes =
    4 << 20;  // of fp32 tiles: stays in the last-level cache, and packing pays off

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// As wide as the cache allows, but at least one panel a thread, all of about the same width.
std::int64_t panel_width(const ProductShape& shape) {
  constexpr std::int64_t element_bytes = sizeof(BFloat16);
  const std::int64_t fits = kPanelBytes / (shape.k * element_bytes) / kColumnStep * kColumnStep;
  const std::int64_t widest = std::clamp(fits, kColumnStep, kMaxPanelWidth);
  const std::int64_t panels =
      std::max<std::int64_t>((shape.n + widest - 1) / widest, at::get_num_threads());
  return round_up((shape.n + panels - 1) / panels, kColumnStep);
}

void pack_panel(const RightFactor<BFloat16>& b, std::int64_t column,
                const kernels::PanelShape& shape, BFloat16* panel) {
  if (b.orientation == Orientation::kAsIs) {
    kernels::pack_rows(b.data + column, b.stride, shape, panel);
  } else {
    kernels::pack_transposed(b.data + column * b.stride, b.stride, shape, panel);
  }
}

struct Transposed {
  torch::Tensor storage;
  std::int64_t stride = 0;
};

// [rows, columns] -> [columns, rows], padded with zeros to an odd number of cache lines: rows a
// power of two apart would share a few sets of the cache.
Transposed transposed(const BFloat16* x, std::int64_t stride, std::int64_t rows,
                      std::int64_t columns) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(BFloat16));
  const std::int64_t padded_rows = (((rows + kLine - 1) / kLine) | 1) * kLine;
  Transposed result{.storage = scratch<BFloat16>(columns * padded_rows), .stride = padded_rows};
  auto* target = data_of<BFloat16>(result.storage);
  at::parallel_for(0, columns, kColumnStep, [&](std::int64_t begin, std::int64_t end) {
    kernels::transpose(x + begin, stride, {.rows = rows, .columns = end - begin},
                       target + begin * padded_rows, padded_rows);
  });
  return result;
}

void blocked_product(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                     const RightFactor<BFloat16>& b, Epilogue epilogue) {
  const std::int64_t width = panel_width(shape), padded_k = round_up(shape.k, 2);
  at::parallel_for(0, (shape.n + width - 1) / width, 1, [&](std::int64_t begin, std::int64_t end) {
    const torch::Tensor panel_storage = scratch<BFloat16>(padded_k * width);
    const torch::Tensor tile_storage = scratch<float>(kRowBlock * width);
    auto* panel = data_of<BFloat16>(panel_storage);
    auto* tile = data_of<float>(tile_storage);
    for (std::int64_t column = begin * width; column < std::min(end * width, shape.n);
         column += width) {
      const std::int64_t columns = std::min(width, shape.n - column);
      pack_panel(b, column, {.k = shape.k, .n = columns, .padded_k = padded_k, .width = width},
                 panel);
      for (std::int64_t row = 0; row < shape.m; row += kRowBlock) {
        const std::int64_t rows = std::min(kRowBlock, shape.m - row);
        multiply(BlockProduct<BFloat16>{.m = rows,
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
    release_products<BFloat16>();
  });
}

// A factor as LibTorch sees it: [rows, columns] after its orientation.
template <typename Factor>
torch::Tensor view_of(const Factor& factor, std::int64_t rows, std::int64_t columns) {
  auto* data = const_cast<float*>(factor.data);
  if (factor.orientation == Orientation::kAsIs) {
    return at::from_blob(data, {rows, columns}, {factor.stride, 1}, at::TensorOptions(at::kFloat));
  }
  return at::from_blob(data, {rows, columns}, {1, factor.stride}, at::TensorOptions(at::kFloat));
}

void product_as_is(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                   const RightFactor<BFloat16>& b, Epilogue epilogue) {
  has_bf16_units() ? blocked_product(shape, a, b, epilogue)
                   : widened_product(shape, a, b, epilogue);
}

}  // namespace

template <>
void product(const ProductShape& shape, const LeftFactor<BFloat16>& a,
             const RightFactor<BFloat16>& b, Epilogue epilogue) {
  if (a.orientation == Orientation::kAsIs) return product_as_is(shape, a, b, epilogue);
  const Transposed left = transposed(a.data, a.stride, shape.k, shape.m);
  product_as_is(shape, {.data = data_of<BFloat16>(left.storage), .stride = left.stride}, b,
                epilogue);
}

template <>
void product(const ProductShape& shape, const LeftFactor<float>& a, const RightFactor<float>& b,
             Epilogue epilogue) {
  if (splitting_pays(shape)) return split_product(shape, a, b, epilogue);
  const std::int64_t fits = kRunBytes / (shape.n * static_cast<std::int64_t>(sizeof(float)));
  // Whole blocks: a library's kernels take rows by the dozen, and leave the last ones to slower
  // code.
  const std::int64_t run =
      std::min(std::max(fits / kRowBlock, std::int64_t{1}) * kRowBlock, shape.m);
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

namespace {

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

bool starts_at_words(const kernels::Rows<BFloat16>& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % sizeof(std::uint32_t) == 0 &&
         rows.stride % 2 == 0;
}

void product_other_way_round(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                             const RightFactor<BFloat16>& b, const kernels::Rows<BFloat16>& out) {
  product<BFloat16>(
      {.m = shape.n, .n = shape.m, .k = shape.k},
      {.data = b.data, .stride = b.stride, .orientation = turned(b.orientation)},
      {.data = a.data, .stride = a.stride, .orientation = turned(a.orientation)},
      [&](const kernels::Tile& tile, TilePlace at) {
        std::array<BFloat16, static_cast<std::size_t>(kRowBlock * kMaxPanelWidth)> rounded;
        kernels::store(tile, kernels::Rows<BFloat16>{rounded.data(), tile.columns});
        kernels::transpose_into(rounded.data(), tile.columns,
                                {.rows = tile.rows, .columns = tile.columns},
                                out.data + at.column * out.stride + at.row, out.stride);
      });
}

}  // namespace

template <>
void product_into(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                  const RightFactor<BFloat16>& b, kernels::Rows<BFloat16> out, Existing existing) {
  if (existing == Existing::kReplace && shape.k % 2 == 0 && starts_at_words(out) &&
      other_way_round_is_cheaper(shape, a.orientation, b.orientation)) {
    return product_other_way_round(shape, a, b, out);
  }
  product<BFloat16>(shape, a, b, [&](const kernels::Tile& tile, TilePlace at) {
    const kernels::Rows<BFloat16> target{out.data + at.row * out.stride + at.column, out.stride};
    existing == Existing::kReplace ? kernels::store(tile, target) : kernels::add(tile, target);
  });
}

template <>
void product_into(const ProductShape& shape, const LeftFactor<float>& a,
                  const RightFactor<float>& b, kernels::Rows<float> out, Existing existing) {
  if (splitting_pays(shape)) return split_product_into(shape, a, b, out, existing);
  const torch::NoGradGuard no_grad;
  const torch::Tensor left = view_of(a, shape.m, shape.k), right = view_of(b, shape.k, shape.n);
  torch::Tensor target =
      at::from_blob(out.data, {shape.m, shape.n}, {out.stride, 1}, at::TensorOptions(at::kFloat));
  existing == Existing::kReplace ? at::mm_out(target, left, right) : target.addmm_(left, right);
}

}  // namespace sidestream::model::fused
