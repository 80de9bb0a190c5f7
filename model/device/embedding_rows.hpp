// Rows of an embedding with their positions, and the gradients of both.
//
// The gradient of a token's row is the sum over its places in the batch, in the order of the batch
// and without atomics: places are sorted by token, cut into tiles of so many, and a block adds up
// one tile. A token whose places are all in one tile is done there. Of one that others follow into
// the next tile the pieces wait for the second stage, where the tile in which it begins adds them
// up. (LibTorch's embedding_dense_backward works alike, in more steps, and leaves the sum with the
// head's gradient to another pass.)
#pragma once

#include <cstdint>

#include "model/device/block.hpp"
#include "model/device/cross_entropy_rows.hpp"
#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

// Places of the batch that a block adds up.
constexpr int kPlacesOfATile = 32;
// Rows, and pieces, of which a thread has the loads under way at once.
constexpr int kEmbeddedAhead = 4;
constexpr int kPlacesAhead = 8;

template <typename T>
struct EmbeddedRows {
  const std::int64_t* ids;  // [rows]
  const T* tokens;          // [vocabulary, width]
  const T* positions;       // [time or more, width]; null: none
  T* out;                   // [rows, width]; NaN where an id is outside the vocabulary
  std::int64_t rows, time, vocabulary, width;
};

// The columns of one thread of a block whose columns begin at tile * threads * kChunk.
template <typename T, Access kAccess>
struct ColumnShare {
  using Held = HeldRow<T, kChunk<T>, kAccess>;
  std::int64_t first;
  Share share;

  SIDESTREAM_INLINE ColumnShare(int thread, int threads, std::int64_t tile, std::int64_t width)
      : first(tile * threads * kChunk<T>), share{thread, threads, width - first} {}

  SIDESTREAM_INLINE void load(Held& held, const T* row) const { held.load(row + first, share); }
  SIDESTREAM_INLINE void store(const Held& held, T* row) const { held.store(row + first, share); }
  SIDESTREAM_INLINE void add(Held& total, const T* row) const {
    Held more;
    load(more, row);
    total.add(more);
  }
};

// Part `part` of `parts` takes the rows part, part + parts, ...
template <Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void embed_tile(Block& block, const EmbeddedRows<T>& rows, std::int64_t tile,
                                  std::int64_t part, std::int64_t parts) {
  block.each([&](int thread) {
    const ColumnShare<T, kAccess> columns(thread, block.threads(), tile, rows.width);
    for (std::int64_t begin = part; begin < rows.rows; begin += kEmbeddedAhead * parts) {
      typename ColumnShare<T, kAccess>::Held held[kEmbeddedAhead];
      for (int r = 0; r < kEmbeddedAhead; ++r) {
        const std::int64_t row = begin + r * parts;
        const std::int64_t id = row < rows.rows ? rows.ids[row] : -1;
        if (id >= 0 && id < rows.vocabulary)
          columns.load(held[r], rows.tokens + id * rows.width);
        else
          held[r].fill(kNotANumber);
      }
      for (int r = 0; r < kEmbeddedAhead; ++r) {
        const std::int64_t row = begin + r * parts;
        if (row >= rows.rows) continue;
        if (rows.positions != nullptr)
          columns.add(held[r], rows.positions + row % rows.time * rows.width);
        columns.store(held[r], rows.out + row * rows.width);
      }
    }
  });
}

template <typename T>
struct TokenGradients {
  const T* grads;             // [count, width]
  const std::int32_t* ids;    // [count], ascending
  const std::int64_t* order;  // [count]: the place in the batch of each, ascending for each id
  float* pieces;              // [tiles, 2, width]: of what began before the tile, of what goes on
  T* target;                  // [vocabulary, width], which is added to
  std::int64_t count, vocabulary, width;

  SIDESTREAM_INLINE std::int64_t begin_of(std::int64_t tile) const { return tile * kPlacesOfATile; }
  SIDESTREAM_INLINE std::int64_t end_of(std::int64_t tile) const {
    return begin_of(tile + 1) < count ? begin_of(tile + 1) : count;
  }
  // Whether the place before, or after, is the same token's.
  SIDESTREAM_INLINE bool began_before(std::int64_t at) const {
    return at > 0 && ids[at - 1] == ids[at];
  }
  SIDESTREAM_INLINE bool goes_on(std::int64_t at) const {
    return at + 1 < count && ids[at + 1] == ids[at];
  }
  SIDESTREAM_INLINE float* piece(std::int64_t tile, int which) const {
    return pieces + (2 * tile + which) * width;
  }
};

template <typename T, Access kAccess>
SIDESTREAM_INLINE void add_to_token(const TokenGradients<T>& all,
                                    const ColumnShare<T, kAccess>& columns,
                                    typename ColumnShare<T, kAccess>::Held total, std::int64_t id) {
  if (id < 0 || id >= all.vocabulary) return;
  T* const row = all.target + id * all.width;
  columns.add(total, row);
  columns.store(total, row);
}

// The first stage: tile `tile` of the places, columns `column_tile`.
template <Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void token_gradient_tile(Block& block, const TokenGradients<T>& all,
                                           std::int64_t column_tile, std::int64_t tile) {
  using Columns = ColumnShare<T, kAccess>;
  block.each([&](int thread) {
    const Columns columns(thread, block.threads(), column_tile, all.width);
    const std::int64_t tile_begin = all.begin_of(tile), end = all.end_of(tile);
    typename Columns::Held total;
    total.clear();
    bool began_before = all.began_before(tile_begin);
    for (std::int64_t begin = tile_begin; begin < end; begin += kPlacesAhead) {
      typename Columns::Held values[kPlacesAhead];
      for (int p = 0; p < kPlacesAhead; ++p) {
        if (begin + p < end) columns.load(values[p], all.grads + all.order[begin + p] * all.width);
      }
      for (int p = 0; p < kPlacesAhead; ++p) {
        const std::int64_t at = begin + p;
        if (at >= end) continue;
        total.add(values[p]);
        const bool goes_on = all.goes_on(at);
        if (goes_on && at + 1 < end) continue;
        if (began_before || goes_on)
          total.store_wide(all.piece(tile, began_before ? 0 : 1) + columns.first, columns.share);
        else
          add_to_token(all, columns, total, all.ids[at]);
        total.clear();
        began_before = false;
      }
    }
  });
}

// The second stage: the token that begins in this tile and goes on after it, if there is one.
template <Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void token_pieces_tile(Block& block, const TokenGradients<T>& all,
                                         std::int64_t column_tile, std::int64_t tile) {
  using Columns = ColumnShare<T, kAccess>;
  const std::int64_t begin = all.begin_of(tile), last = all.end_of(tile) - 1;
  const std::int32_t id = all.ids[last];
  if (!all.goes_on(last) || (all.began_before(begin) && all.ids[begin] == id)) return;
  const auto has_piece = [&](std::int64_t one) {
    return all.begin_of(one) < all.count && all.ids[all.begin_of(one)] == id;
  };
  block.each([&](int thread) {
    const Columns columns(thread, block.threads(), column_tile, all.width);
    typename Columns::Held total;
    total.load_wide(all.piece(tile, 1) + columns.first, columns.share);
    for (std::int64_t next = tile + 1; has_piece(next); next += kPlacesAhead) {
      typename Columns::Held pieces[kPlacesAhead];
      for (int p = 0; p < kPlacesAhead; ++p) {
        if (has_piece(next + p))
          pieces[p].load_wide(all.piece(next + p, 0) + columns.first, columns.share);
        else
          pieces[p].clear();
      }
      for (int p = 0; p < kPlacesAhead; ++p) total.add(pieces[p]);
    }
    add_to_token(all, columns, total, id);
  });
}

template <typename T>
struct PositionGradients {
  const T* grads;  // [batch, time, width]
  T* out;          // [time, width]: sums over the batch
  std::int64_t batch, time, width;
};

// Part `part` of `parts` takes the positions part, part + parts, ...
template <Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void position_gradient_tile(Block& block, const PositionGradients<T>& all,
                                              std::int64_t tile, std::int64_t part,
                                              std::int64_t parts) {
  using Columns = ColumnShare<T, kAccess>;
  block.each([&](int thread) {
    const Columns columns(thread, block.threads(), tile, all.width);
    for (std::int64_t position = part; position < all.time; position += parts) {
      typename Columns::Held total;
      total.clear();
      for (std::int64_t begin = 0; begin < all.batch; begin += kPlacesAhead) {
        typename Columns::Held values[kPlacesAhead];
        for (int p = 0; p < kPlacesAhead; ++p) {
          if (begin + p < all.batch)
            columns.load(values[p], all.grads + ((begin + p) * all.time + position) * all.width);
          else
            values[p].clear();
        }
        for (int p = 0; p < kPlacesAhead; ++p) total.add(values[p]);
      }
      columns.store(total, all.out + position * all.width);
    }
  });
}

}  // namespace sidestream::model::device
