// What each kernel does in block (x, y) of its grid. A body is copied to the device; nvcc makes a
// kernel of it, tests run it on the processor.
#pragma once

#include <cstdint>

#include "model/device/cross_entropy_rows.hpp"
#include "model/device/embedding_rows.hpp"
#include "model/device/gelu_rows.hpp"
#include "model/device/geometry.hpp"
#include "model/device/kernel_function.hpp"
#include "model/device/norm_rows.hpp"
#include "model/device/row_sums.hpp"
#include "model/device/scaled_range.hpp"

namespace sidestream::model::device {

// Where a block lies, in a grid of so many.
struct BlockPlace {
  std::int64_t x, y, blocks_x, blocks_y;
};

// Those of many threads are not told: the registers of 512 are few enough.
template <NormPass kPass>
constexpr int norm_blocks_at_once(int held) {
  return held == kHeldOfMany ? 1 : norm_warps_at_once<kPass>(held);
}

template <typename T, int kHeld, Access kAccess>
struct NormForwardBody {
  static constexpr const char* kName = "norm";
  static constexpr int kMostThreads = most_norm_threads(kHeld);
  static constexpr int kBlocksAtOnce = norm_blocks_at_once<NormPass::kForward>(kHeld);
  NormForwardRows<T> rows;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    norm_forward_rows<kHeld, kAccess>(block, rows, place.x, place.blocks_x);
  }
};

template <typename T, int kHeld, Access kAccess>
struct NormBackwardBody {
  static constexpr const char* kName = "norm_backward";
  static constexpr int kMostThreads = most_norm_threads(kHeld);
  static constexpr int kBlocksAtOnce = norm_blocks_at_once<NormPass::kBackward>(kHeld);
  NormBackwardRows<T> rows;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    norm_backward_rows<kHeld, kAccess>(block, rows, place.x, place.blocks_x);
  }
};

template <typename T, Access kAccess>
struct GeluForwardBody {
  static constexpr const char* kName = "gelu";
  static constexpr int kMostThreads = kElementThreads;
  GeluForwardRange<T> range;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    block.each([&](int thread) {
      gelu_forward_chunk<kAccess>(range, place.x * block.threads() + thread);
    });
  }
};

template <typename T, Access kAccess>
struct GeluBackwardBody {
  static constexpr const char* kName = "gelu_backward";
  static constexpr int kMostThreads = kElementThreads;
  static constexpr int kBlocksAtOnce = kRowPartsAtOnce;
  GeluBackwardRows<T> rows;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    gelu_backward_tile<kAccess>(block, rows, place.x, place.y, place.blocks_y);
  }
};

template <typename T, Access kAccess>
struct RowSumsBody {
  static constexpr const char* kName = "row_sums";
  static constexpr int kMostThreads = kElementThreads;
  static constexpr int kBlocksAtOnce = kRowPartsAtOnce;
  RowSums<T> sums;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    row_sums_tile<kAccess>(block, sums, place.x, place.y, place.blocks_y);
  }
};

template <typename T, Access kAccess>
struct ScaleBody {
  static constexpr const char* kName = "scale";
  static constexpr int kMostThreads = kElementThreads;
  ScaledRange<T> range;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    if (*range.factor == 1.0f) return;
    block.each(
        [&](int thread) { scale_chunk<kAccess>(range, place.x * block.threads() + thread); });
  }
};

template <typename T, Access kAccess>
struct EmbedBody {
  static constexpr const char* kName = "embed";
  static constexpr int kMostThreads = kElementThreads;
  EmbeddedRows<T> rows;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    embed_tile<kAccess>(block, rows, place.x, place.y, place.blocks_y);
  }
};

// Of any number of tiles: they are in x, which alone has room for them.
template <typename T, Access kAccess>
struct TokenGradientsBody {
  static constexpr const char* kName = "token_gradients";
  static constexpr int kMostThreads = kElementThreads;
  TokenGradients<T> gradients;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    token_gradient_tile<kAccess>(block, gradients, place.y, place.x);
  }
};

template <typename T, Access kAccess>
struct TokenPiecesBody {
  static constexpr const char* kName = "token_pieces";
  static constexpr int kMostThreads = kElementThreads;
  TokenGradients<T> gradients;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    token_pieces_tile<kAccess>(block, gradients, place.y, place.x);
  }
};

template <typename T>
struct ColumnSumsBody {
  static constexpr const char* kName = "column_sums";
  static constexpr int kMostThreads = kColumnSumThreads;
  ColumnSums<T> sums;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    column_sums_tile(block, sums, place.x, static_cast<int>(place.y));
  }
};

template <typename T>
struct CrossEntropyBody {
  static constexpr const char* kName = "cross_entropy";
  static constexpr int kMostThreads = kMostLossThreads;
  CrossEntropyRows<T> rows;

  template <typename Block>
  SIDESTREAM_KERNEL void operator()(Block& block, const BlockPlace& place) const {
    cross_entropy_rows(block, rows, place.x, place.blocks_x);
  }
};

}  // namespace sidestream::model::device
