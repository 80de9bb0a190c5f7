// Rows of an embedding with their positions, and the gradient of the tokens' rows.
//
// That is the sum over a token's places in the batch, in the order of the batch and without
// atomics: places are sorted by token, cut into tiles of so many, and a block adds up one tile. A
// token whose places are all in one tile is done there. Of one that others follow into the next
// tile the pieces wait for the second stage, where the tile in which it begins adds them up.
// (LibTorch's embedding_dense_backward works alike, in more steps, and leaves the sum with the
// head's gradient to another pass.)
//
// Loads stand together and before any use, without a branch of their own, so that they are under
// way at once: those of places that are none fetch what another one does.
#pragma once

#include <cstdint>

#include "model/device/block.hpp"
#include "model/device/embedding_tiles.hpp"
#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"
#include "model/device/not_a_number.hpp"

namespace sidestream::model::device {

// Rows, or pieces, of which a thread has the loads under way at once.
constexpr int kPlacesAhead = 8;

SIDESTREAM_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// The columns of one thread, a chunk, of a block whose columns begin at tile * threads * kChunk.
template <typename T, Access kAccess>
struct ColumnShare {
  using Held = HeldRow<T, kChunk<T>, kAccess>;
  using Loaded = LoadedRow<T, kChunk<T>, kAccess>;
  std::int64_t first;
  Share share;

  SIDESTREAM_INLINE ColumnShare(int thread, int threads, std::int64_t tile, std::int64_t width)
      : first(tile * threads * kChunk<T>), share{thread, threads, width - first} {}

  SIDESTREAM_INLINE bool is_empty() const { return share.thread * kChunk<T> >= share.width; }
  SIDESTREAM_INLINE void load(Loaded& loaded, const T* row) const {
    loaded.load(row + first, share);
  }
  SIDESTREAM_INLINE Held held(const T* row) const {
    Held held;
    held.load(row + first, share);
    return held;
  }
  SIDESTREAM_INLINE void store(const Held& held, T* row) const { held.store(row + first, share); }
};

template <typename T>
struct EmbeddedRows {
  const std::int64_t* ids;  // [batch, time]
  const T* tokens;          // [vocabulary, width]
  const T* positions;       // [time or more, width]; null: none
  T* out;                   // [batch, time, width]; NaN where an id is outside the vocabulary
  std::int64_t batch, time, vocabulary, width;
};

// Part `part` of `parts` takes the positions part, part + parts, ... of every sequence.
template <Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void embed_tile(Block& block, const EmbeddedRows<T>& rows, std::int64_t tile,
                                  std::int64_t part, std::int64_t parts) {
  using Columns = ColumnShare<T, kAccess>;
  block.each([&](int thread) {
    const Columns columns(thread, block.threads(), tile, rows.width);
    if (columns.is_empty()) return;
    for (std::int64_t at = part; at < rows.time; at += parts) {
      typename Columns::Held position;
      position.clear();
      if (rows.positions != nullptr) position = columns.held(rows.positions + at * rows.width);
      for (std::int64_t begin = 0; begin < rows.batch; begin += kPlacesAhead) {
        std::int64_t ids[kPlacesAhead];
        typename Columns::Loaded loaded[kPlacesAhead];
        for (int p = 0; p < kPlacesAhead; ++p)
          ids[p] = rows.ids[smaller(begin + p, rows.batch - 1) * rows.time + at];
        for (int p = 0; p < kPlacesAhead; ++p) {
          const bool is_outside = ids[p] < 0 || ids[p] >= rows.vocabulary;
          columns.load(loaded[p], rows.tokens + (is_outside ? 0 : ids[p]) * rows.width);
        }
        for (int p = 0; p < kPlacesAhead; ++p) {
          if (begin + p >= rows.batch) continue;
          typename Columns::Held row = loaded[p].held();
          if (rows.positions != nullptr) row.add(position);
          if (ids[p] < 0 || ids[p] >= rows.vocabulary) row.fill(kNotANumber);
          columns.store(row, rows.out + ((begin + p) * rows.time + at) * rows.width);
        }
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
    return smaller(begin_of(tile + 1), count);
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
  total.add(columns.held(row));
  columns.store(total, row);
}

// The first stage: tile `tile` of the places, columns `column_tile`.
template <Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void token_gradient_tile(Block& block, const TokenGradients<T>& all,
                                           std::int64_t column_tile, std::int64_t tile) {
  using Columns = ColumnShare<T, kAccess>;
  block.each([&](int thread) {
    const Columns columns(thread, block.threads(), column_tile, all.width);
    if (columns.is_empty()) return;
    const std::int64_t tile_begin = all.begin_of(tile), end = all.end_of(tile);
    typename Columns::Held total;
    total.clear();
    bool began_before = all.began_before(tile_begin);
    for (std::int64_t begin = tile_begin; begin < end; begin += kPlacesAhead) {
      std::int64_t places[kPlacesAhead];
      typename Columns::Loaded loaded[kPlacesAhead];
      for (int p = 0; p < kPlacesAhead; ++p) places[p] = all.order[smaller(begin + p, end - 1)];
      for (int p = 0; p < kPlacesAhead; ++p)
        columns.load(loaded[p], all.grads + places[p] * all.width);
      for (int p = 0; p < kPlacesAhead; ++p) {
        const std::int64_t at = begin + p;
        if (at >= end) continue;
        total.add(loaded[p].held());
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
    if (columns.is_empty()) return;
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

}  // namespace sidestream::model::device
