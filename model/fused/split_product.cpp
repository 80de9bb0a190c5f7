#include "model/fused/split_product.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

#include "core/base/multiple.hpp"
#include "model/kernels/pack.hpp"
#include "model/kernels/split.hpp"

namespace sidestream::model::fused {
namespace {

using core::BFloat16;

constexpr std::int64_t kRowRun =
    256;  // rows of the left factor, split: in a second-level cache with a panel
constexpr std::int64_t kRowBlock = 64;  // rows of a tile
constexpr std::int64_t kPanelWidth = 128;
constexpr std::int64_t kPackedBytes =
    8 << 20;  // of the right factor, split: streams from the last-level cache
constexpr std::int64_t kDepth = 512;  // of k, where sums can wait in the result
constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(BFloat16));

// A part of the rows, the columns or k.
struct Range {
  std::int64_t first = 0, count = 0;
};

// Calls body(range) for pieces of [0, count).
template <typename Body>
void for_pieces(std::int64_t count, std::int64_t piece, Body&& body) {
  for (std::int64_t first = 0; first < count; first += piece)
    body(Range{first, std::min(piece, count - first)});
}

// A run of rows of the left factor as [hi | mid | lo]. Rows are an odd number of cache lines apart:
// a power of two would map them to a few sets of the cache.
class SplitLeft {
 public:
  explicit SplitLeft(std::int64_t depth)
      : padded_k_(core::rounded_up(depth, kLine)),
        stride_((3 * padded_k_ / kLine | 1) * kLine),
        storage_(scratch<BFloat16>(kRowRun * stride_)) {}

  void take(const LeftFactor<float>& a, Range rows, Range depth) {
    constexpr std::int64_t kPiece = 32;
    at::parallel_for(0, (rows.count + kPiece - 1) / kPiece, 1,
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t row = begin * kPiece;
                            row < std::min(end * kPiece, rows.count); row += kPiece) {
                         take_piece(a, {rows.first + row, std::min(kPiece, rows.count - row)},
                                    depth, data_of<BFloat16>(storage_) + row * stride_);
                       }
                     });
  }

  const BFloat16* row(std::int64_t i) const { return data_of<BFloat16>(storage_) + i * stride_; }
  std::int64_t stride() const { return stride_; }
  std::int64_t padded_k() const { return padded_k_; }

 private:
  void take_piece(const LeftFactor<float>& a, Range rows, Range depth, BFloat16* data) const {
    const kernels::SplitRows target{.data = data, .stride = stride_, .padded_columns = padded_k_};
    const kernels::MatrixShape shape{.rows = rows.count, .columns = depth.count};
    if (a.orientation == Orientation::kAsIs) {
      return kernels::split_rows(a.data + rows.first * a.stride + depth.first, a.stride, shape,
                                 target);
    }
    const std::int64_t stride =
        depth.count + 16;  // a power of two would map rows to a few sets of the cache
    const torch::Tensor turned = scratch<float>(rows.count * stride);
    kernels::transpose(a.data + depth.first * a.stride + rows.first, a.stride,
                       {.rows = depth.count, .columns = rows.count}, data_of<float>(turned),
                       stride);
    kernels::split_rows(data_of<float>(turned), stride, shape, target);
  }

  std::int64_t padded_k_, stride_;
  torch::Tensor storage_;
};

// Columns of the right factor as panels.
class SplitRight {
 public:
  SplitRight(const RightFactor<float>& b, Range columns, Range depth)
      : columns_(columns.count),
        panel_elements_(3 * core::rounded_up(depth.count, kLine) * kPanelWidth),
        storage_(scratch<BFloat16>(panels() * panel_elements_)) {
    at::parallel_for(0, panels(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t panel = begin; panel < end; ++panel) {
        take_panel(b, {columns.first + panel * kPanelWidth, panel_columns(panel)}, depth,
                   data_of<BFloat16>(storage_) + panel * panel_elements_);
      }
    });
  }

  std::int64_t panels() const { return (columns_ + kPanelWidth - 1) / kPanelWidth; }
  std::int64_t panel_columns(std::int64_t panel) const {
    return std::min(kPanelWidth, columns_ - panel * kPanelWidth);
  }
  const BFloat16* panel(std::int64_t i) const {
    return data_of<BFloat16>(storage_) + i * panel_elements_;
  }

  // How many columns are packed at a time.
  static std::int64_t columns_at_once(std::int64_t depth) {
    const std::int64_t panel_bytes = 3 * core::rounded_up(depth, kLine) * kPanelWidth *
                                     static_cast<std::int64_t>(sizeof(BFloat16));
    return std::max<std::int64_t>(kPackedBytes / panel_bytes, at::get_num_threads()) * kPanelWidth;
  }

 private:
  static void take_panel(const RightFactor<float>& b, Range columns, Range depth, BFloat16* panel) {
    const kernels::PanelShape shape{.k = depth.count,
                                    .n = columns.count,
                                    .padded_k = core::rounded_up(depth.count, kLine),
                                    .width = kPanelWidth};
    if (b.orientation == Orientation::kAsIs) {
      return kernels::split_panel(b.data + depth.first * b.stride + columns.first, b.stride, shape,
                                  panel);
    }
    const torch::Tensor turned = scratch<float>(depth.count * kPanelWidth);
    kernels::transpose(b.data + columns.first * b.stride + depth.first, b.stride,
                       {.rows = columns.count, .columns = depth.count}, data_of<float>(turned),
                       kPanelWidth);
    kernels::split_panel(data_of<float>(turned), kPanelWidth, shape, panel);
  }

  std::int64_t columns_, panel_elements_;
  torch::Tensor storage_;
};

// Six products in three, the smallest terms first; then the epilogue, while the tile is in the
// first-level cache.
void multiply_tile(const SplitLeft& left, Range rows, const BFloat16* panel, std::int64_t columns,
                   TilePlace at, Epilogue epilogue) {
  constexpr std::int64_t kStride = kPanelWidth + 16;  // an odd number of cache lines
  alignas(64) float tile[kRowBlock * kStride];
  for (std::int64_t parts = 3; parts > 0; --parts) {
    multiply(BlockProduct<BFloat16>{.m = rows.count,
                                    .n = columns,
                                    .k = parts * left.padded_k(),
                                    .a = left.row(rows.first),
                                    .a_stride = left.stride(),
                                    .b = panel + (3 - parts) * left.padded_k() * kPanelWidth,
                                    .b_stride = kPanelWidth,
                                    .c = tile,
                                    .c_stride = kStride,
                                    .accumulate = parts == 3 ? Accumulate::kNo : Accumulate::kYes});
  }
  epilogue({.data = tile, .stride = kStride, .rows = rows.count, .columns = columns}, at);
}

// The product over a part of k. All threads share the splitting of a run of rows, then take panels;
// the tiles of a column come in the order of rows.
void over_depth(const ProductShape& shape, const LeftFactor<float>& a, const RightFactor<float>& b,
                Range depth, Epilogue epilogue) {
  SplitLeft left(depth.count);
  for_pieces(shape.n, SplitRight::columns_at_once(depth.count), [&](Range columns) {
    const SplitRight right(b, columns, depth);
    for_pieces(shape.m, kRowRun, [&](Range run) {
      left.take(a, run, depth);
      at::parallel_for(0, right.panels(), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t panel = begin; panel < end; ++panel) {
          for_pieces(run.count, kRowBlock, [&](Range rows) {
            multiply_tile(
                left, rows, right.panel(panel), right.panel_columns(panel),
                {.row = run.first + rows.first, .column = columns.first + panel * kPanelWidth},
                epilogue);
          });
        }
        release_products<BFloat16>();
      });
    });
  });
}

}  // namespace

bool splitting_pays(const ProductShape& shape) {
  // Every number of a factor is split once and used in as many products as the other factor has
  // rows or columns. With 256 of them it was measured to cost more than it brings, with 384 less.
  constexpr std::int64_t kFewest = 384;
  static const bool amx = kernels::has_amx() && has_bf16_units();
  return amx && std::min(shape.m, shape.n) >= kFewest;
}

void split_product(const ProductShape& shape, const LeftFactor<float>& a,
                   const RightFactor<float>& b, Epilogue epilogue) {
  over_depth(shape, a, b, {0, shape.k}, epilogue);
}

void split_product_into(const ProductShape& shape, const LeftFactor<float>& a,
                        const RightFactor<float>& b, kernels::Rows<float> out, Existing existing) {
  for_pieces(shape.k, kDepth, [&](Range depth) {
    const bool replaces = depth.first == 0 && existing == Existing::kReplace;
    over_depth(shape, a, b, depth, [&](const kernels::Tile& tile, TilePlace at) {
      const kernels::Rows<float> target{out.data + at.row * out.stride + at.column, out.stride};
      replaces ? kernels::store(tile, target) : kernels::add(tile, target);
    });
  });
}

}  // namespace sidestream::model::fused
