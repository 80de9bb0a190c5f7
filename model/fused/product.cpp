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
constexpr std::int64_t kMaxPanelWidth = 384;
constexpr std::int64_t kFlat = 256;  // k so small that a wider panel fits the same cache
constexpr std::int64_t kWidePanel = 768;
constexpr std::int64_t kColumnStep = 32;
constexpr std::int64_t kDepth =
    512;  // of k: a block's rows of A stay in the first-level cache for all columns of the panel
constexpr std::int64_t kShallow = 768;             // k that needs no parts
constexpr std::int64_t kSumsBytes = 768 << 10;     // with a part of a panel in a second-level cache
constexpr std::int64_t kPanelBytes = 5 << 18;      // a whole panel in a second-level cache
constexpr std::int64_t kKeptPanelBytes = 4 << 20;  // in the last-level cache
constexpr std::int64_t kFarBytes = 2 << 20;        // as many as a second-level cache holds
constexpr std::int64_t kRunBytes =
    4 << 20;  // of fp32 tiles: stays in the last-level cache, and packing pays off

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// At least one panel a thread, all of about the same width.
std::int64_t panel_width(std::int64_t columns, std::int64_t widest = kMaxPanelWidth) {
  const std::int64_t panels =
      std::max<std::int64_t>((columns + widest - 1) / widest, at::get_num_threads());
  return round_up((columns + panels - 1) / panels, kColumnStep);
}

void pack_panel(const RightFactor<BFloat16>& b, std::int64_t column,
                const kernels::PanelShape& shape, BFloat16* panel) {
  if (b.orientation == Orientation::kAsIs) {
    kernels::pack_rows(b.data + b.panels.offset(column), b.stride, shape, panel);
  } else {
    kernels::pack_transposed(b.data + column * b.stride, b.stride, shape, panel);
  }
}

// k goes by in parts of so many where it is deep: rows of A and the panel would push each other out
// of the cache.
std::int64_t depth_of_part(std::int64_t k) {
  const std::int64_t padded_k = round_up(k, 2);
  return padded_k <= kShallow ? padded_k : kDepth;
}

// A [m, k] in parts of `depth` of k: each has rows `stride` apart, and starts `part_step` after the
// last one.
struct LeftParts {
  const BFloat16* data = nullptr;
  std::int64_t stride = 0, part_step = 0, depth = 0;
};

std::int64_t next_panel(std::int64_t column, std::int64_t width) {
  return (column / width + 1) * width;
}

struct Transposed {
  torch::Tensor storage;
  LeftParts parts;
};

// [rows, columns] -> parts of [columns, depth], padded with zeros to an odd number of cache lines:
// rows a power of two apart would share a few sets of the cache.
Transposed transposed(const LeftFactor<BFloat16>& x, const kernels::MatrixShape& shape,
                      std::int64_t depth) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(BFloat16));
  const std::int64_t padded_depth = (((depth + kLine - 1) / kLine) | 1) * kLine;
  const std::int64_t part_step = shape.columns * padded_depth;
  const torch::Tensor storage = scratch<BFloat16>((shape.rows + depth - 1) / depth * part_step);
  auto* target = data_of<BFloat16>(storage);
  at::parallel_for(0, shape.columns, kColumnStep, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t column = begin, next = 0; column < end; column = next) {
      next = x.panels.width == 0 ? end : std::min(end, next_panel(column, x.panels.width));
      for (std::int64_t row = 0; row < shape.rows; row += depth) {
        kernels::transpose(x.data + row * x.stride + x.panels.offset(column), x.stride,
                           {.rows = std::min(depth, shape.rows - row), .columns = next - column},
                           target + row / depth * part_step + column * padded_depth, padded_depth);
      }
    }
  });
  return {
      .storage = storage,
      .parts = {.data = target, .stride = padded_depth, .part_step = part_step, .depth = depth}};
}

LeftParts as_it_lies(const LeftFactor<BFloat16>& a, std::int64_t depth) {
  const bool in_panels = a.panels.width != 0;
  return {.data = a.data,
          .stride = a.stride,
          .part_step = in_panels ? a.panels.step : depth,
          .depth = depth};
}

// No part lies in two panels.
std::int64_t depth_of_parts(const LeftFactor<BFloat16>& a, const RightFactor<BFloat16>& b,
                            std::int64_t k) {
  if (a.orientation == Orientation::kAsIs && a.panels.width != 0) return a.panels.width;
  if (b.orientation == Orientation::kTransposed && b.panels.width != 0) return b.panels.width;
  return depth_of_part(k);
}

// Columns of the product, a panel at a time. Where k is deep, sums of many rows stay in the cache
// while its parts go by.
class PanelProduct {
 public:
  PanelProduct(const ProductShape& shape, const LeftParts& a, const RightFactor<BFloat16>& b,
               std::int64_t width)
      : shape_(shape),
        a_(a),
        b_(b),
        width_(width),
        padded_k_(round_up(shape.k, 2)),
        depth_(a.depth),
        rows_(rows_of_sums()),
        keeps_panel_(rows_ < shape.m && panel_bytes() <= kKeptPanelBytes),
        panel_(scratch<BFloat16>((keeps_panel_ ? padded_k_ : depth_) * width)),
        sums_(scratch<float>(rows_ * width)) {}

  void run(std::int64_t column, Epilogue epilogue) {
    const std::int64_t columns = std::min(width_, shape_.n - column);
    for (std::int64_t row = 0; row < shape_.m; row += rows_) {
      const std::int64_t rows = std::min(rows_, shape_.m - row);
      for (std::int64_t k = 0; k < padded_k_; k += depth_)
        add_part({row, column}, rows, columns, k);
      for (std::int64_t block = 0; block < rows; block += kRowBlock) {
        epilogue({.data = data_of<float>(sums_) + block * width_,
                  .stride = width_,
                  .rows = std::min(kRowBlock, rows - block),
                  .columns = columns,
                  .ahead = rows_after(row + block)},
                 {.row = row + block, .column = column});
      }
    }
  }

 private:
  // Of A, what the block after the one from `row` on begins with; the next panel begins at the top.
  kernels::RowsAhead rows_after(std::int64_t row) const {
    const std::int64_t next = row + kRowBlock < shape_.m ? row + kRowBlock : 0;
    return {.data = a_.data + next * a_.stride,
            .stride_bytes = a_.stride * std::int64_t{sizeof(BFloat16)},
            .bytes = std::min(depth_, padded_k_) * std::int64_t{sizeof(BFloat16)},
            .rows = std::min(kRowBlock, shape_.m - next)};
  }

  std::int64_t panel_bytes() const { return padded_k_ * width_ * std::int64_t{sizeof(BFloat16)}; }

  std::int64_t rows_of_sums() const {
    if (depth_ == padded_k_ || panel_bytes() <= kPanelBytes) return kRowBlock;
    const std::int64_t fits = kSumsBytes / (width_ * std::int64_t{sizeof(float)});
    return std::min(fits / kRowBlock * kRowBlock, round_up(shape_.m, kRowBlock));
  }

  // Rows k to k + depth of B in the columns of the panel.
  const BFloat16* part_of_panel(TilePlace at, std::int64_t columns, std::int64_t k) {
    BFloat16* part = data_of<BFloat16>(panel_) + (keeps_panel_ ? k * width_ : 0);
    const bool packed = at.row > 0 && (keeps_panel_ || depth_ == padded_k_);
    if (packed) return part;
    const std::int64_t depth = std::min(depth_, shape_.k - k);
    RightFactor<BFloat16> b = b_;
    b.data += b.orientation == Orientation::kAsIs ? k * b.stride : b.panels.offset(k);
    pack_panel(b, at.column,
               {.k = depth, .n = columns, .padded_k = round_up(depth, 2), .width = width_}, part);
    return part;
  }

  void add_part(TilePlace at, std::int64_t rows, std::int64_t columns, std::int64_t k) {
    const BFloat16* part = part_of_panel(at, columns, k);
    for (std::int64_t block = 0; block < rows; block += kRowBlock) {
      multiply(BlockProduct<BFloat16>{
          .m = std::min(kRowBlock, rows - block),
          .n = columns,
          .k = std::min(depth_, padded_k_ - k),
          .a = a_.data + k / depth_ * a_.part_step + (at.row + block) * a_.stride,
          .a_stride = a_.stride,
          .b = part,
          .b_stride = width_,
          .c = data_of<float>(sums_) + block * width_,
          .c_stride = width_,
          .accumulate = k > 0 ? kernels::Accumulate::kYes : kernels::Accumulate::kNo});
    }
  }

  ProductShape shape_;
  LeftParts a_;
  RightFactor<BFloat16> b_;
  std::int64_t width_, padded_k_, depth_, rows_;
  bool keeps_panel_;
  torch::Tensor panel_, sums_;
};

void blocked_product(const ProductShape& shape, const LeftParts& a, const RightFactor<BFloat16>& b,
                     std::int64_t widest, Epilogue epilogue) {
  const bool columns_in_panels = b.orientation == Orientation::kAsIs && b.panels.width != 0;
  const std::int64_t width = columns_in_panels ? b.panels.width : panel_width(shape.n, widest);
  at::parallel_for(0, (shape.n + width - 1) / width, 1, [&](std::int64_t begin, std::int64_t end) {
    PanelProduct panel(shape, a, b, width);
    for (std::int64_t i = begin; i < end; ++i) panel.run(i * width, epilogue);
    release_products<BFloat16>();
  });
}

// Tiles have at most `widest` columns.
void product_of(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                const RightFactor<BFloat16>& b, std::int64_t widest, Epilogue epilogue) {
  const bool in_parts = has_bf16_units();
  const std::int64_t depth = in_parts ? depth_of_parts(a, b, shape.k) : shape.k;
  Transposed left;
  if (a.orientation == Orientation::kTransposed) {
    left = transposed(a, {.rows = shape.k, .columns = shape.m}, depth);
  } else {
    left.parts = as_it_lies(a, depth);
  }
  if (in_parts) return blocked_product(shape, left.parts, b, widest, epilogue);
  widened_product(shape, {.data = left.parts.data, .stride = left.parts.stride}, b, epilogue);
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

}  // namespace

template <>
Panels best_panels<BFloat16>(std::int64_t m, std::int64_t n) {
  if (!has_bf16_units() || n % kColumnStep != 0) return {};
  const std::int64_t width = panel_width(n);
  return {.width = width, .step = m * width};
}

template <>
Panels best_panels<float>(std::int64_t /*m*/, std::int64_t /*n*/) {
  return {};
}

template <>
void product(const ProductShape& shape, const LeftFactor<BFloat16>& a,
             const RightFactor<BFloat16>& b, Epilogue epilogue) {
  product_of(shape, a, b, kMaxPanelWidth, epilogue);
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

void store_in_cache(const kernels::Tile& tile, kernels::Rows<BFloat16> out) {
  kernels::store(tile, out);
}

bool starts_at_words(const kernels::Rows<BFloat16>& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % sizeof(std::uint32_t) == 0 &&
         rows.stride % 2 == 0;
}

void product_other_way_round(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                             const RightFactor<BFloat16>& b, const kernels::Rows<BFloat16>& out) {
  product_of({.m = shape.n, .n = shape.m, .k = shape.k},
             {.data = b.data,
              .stride = b.stride,
              .orientation = turned(b.orientation),
              .panels = b.panels},
             {.data = a.data,
              .stride = a.stride,
              .orientation = turned(a.orientation),
              .panels = a.panels},
             widest_panel(shape.k), [&](const kernels::Tile& tile, TilePlace at) {
               std::array<BFloat16, static_cast<std::size_t>(kRowBlock * kWidePanel)> rounded;
               kernels::store(tile, kernels::Rows<BFloat16>{rounded.data(), tile.columns});
               kernels::transpose_into(rounded.data(), tile.columns,
                                       {.rows = tile.rows, .columns = tile.columns},
                                       out.data + at.column * out.stride + at.row, out.stride);
             });
}

}  // namespace

template <>
void product_into(const ProductShape& shape, const LeftFactor<BFloat16>& a,
                  const RightFactor<BFloat16>& b, kernels::Rows<BFloat16> out, Existing existing,
                  NextRead next_read) {
  if (existing == Existing::kReplace && shape.k % 2 == 0 && starts_at_words(out) &&
      other_way_round_is_cheaper(shape, a.orientation, b.orientation)) {
    return product_other_way_round(shape, a, b, out);
  }
  const bool far = next_read == NextRead::kLater &&
                   shape.m * shape.n * std::int64_t{sizeof(BFloat16)} >= kFarBytes;
  const auto store = far ? kernels::store_past_caches : store_in_cache;
  product_of(shape, a, b, widest_panel(shape.k), [&](const kernels::Tile& tile, TilePlace at) {
    const kernels::Rows<BFloat16> target{out.data + at.row * out.stride + at.column, out.stride};
    existing == Existing::kReplace ? store(tile, target) : kernels::add(tile, target);
  });
}

template <>
void product_into(const ProductShape& shape, const LeftFactor<float>& a,
                  const RightFactor<float>& b, kernels::Rows<float> out, Existing existing,
                  NextRead /*next_read*/) {
  if (splitting_pays(shape)) return split_product_into(shape, a, b, out, existing);
  const torch::NoGradGuard no_grad;
  const torch::Tensor left = view_of(a, shape.m, shape.k), right = view_of(b, shape.k, shape.n);
  torch::Tensor target =
      at::from_blob(out.data, {shape.m, shape.n}, {out.stride, 1}, at::TensorOptions(at::kFloat));
  existing == Existing::kReplace ? at::mm_out(target, left, right) : target.addmm_(left, right);
}

}  // namespace sidestream::model::fused
