// The part of a row that one thread holds in its registers, as floats, and its way from and to
// memory: 16 bytes at a time where the addresses allow it.
#pragma once

#include <cstdint>

#include "core/base/vectorize.hpp"
#include "model/device/narrow.hpp"

namespace sidestream::model::device {

// kVector: every row begins at a multiple of 16 bytes and has whole chunks. kElement: one element
// at a time, in the same places of the same threads, for widths and addresses that are neither; the
// same numbers at a fraction of the speed.
enum class Access { kVector, kElement };

// A thread among those that share a row.
struct Share {
  int thread, threads;
  std::int64_t width;
};

// Who shares a row has so many threads that only the last so many floats of one can lie past the
// row's end: nothing is asked of those before.
constexpr int kHeldAtEnd = 8;

// Chunk c of a thread begins at column (c * threads + thread) * kChunk: neighbours read what is
// side by side. Columns from the width on hold 0.
template <typename T, int kHeld, Access kAccess>
struct HeldRow {
  static_assert(kHeld % kChunk<T> == 0);
  static constexpr int kChunks = kHeld / kChunk<T>;
  float at[kHeld];

  // Whether all of a thread's float i, or of its chunk, lies in the row.
  SIDESTREAM_INLINE static bool has(const Share& share, int i) {
    return i < kHeld - kHeldAtEnd || column_of(share, i / kChunk<T>) + i % kChunk<T> < share.width;
  }
  SIDESTREAM_INLINE static bool has_chunk(const Share& share, int chunk) {
    return (chunk + 1) * kChunk<T> <= kHeld - kHeldAtEnd || column_of(share, chunk) < share.width;
  }

  SIDESTREAM_INLINE static std::int64_t column_of(const Share& share, int chunk) {
    return (static_cast<std::int64_t>(chunk) * share.threads + share.thread) * kChunk<T>;
  }

  SIDESTREAM_INLINE void fill(float value) {
    for (int i = 0; i < kHeld; ++i) at[i] = value;
  }
  SIDESTREAM_INLINE void clear() { fill(0); }

  SIDESTREAM_INLINE void add(const HeldRow& other) {
    for (int i = 0; i < kHeld; ++i) at[i] += other.at[i];
  }

  SIDESTREAM_INLINE void load(const T* row, const Share& share) {
    for (int c = 0; c < kChunks; ++c) load_one(row, share, c);
  }

  SIDESTREAM_INLINE void store(T* row, const Share& share) const {
    for (int c = 0; c < kChunks; ++c) store_one(row, share, c);
  }

  // Sums of columns, in fp32 whatever T is.
  SIDESTREAM_INLINE void load_wide(const float* row, const Share& share) {
    for (int i = 0; i < kHeld; ++i) {
      const std::int64_t column = column_of(share, i / kChunk<T>) + i % kChunk<T>;
      at[i] = column < share.width ? row[column] : 0;
    }
  }
  SIDESTREAM_INLINE void store_wide(float* row, const Share& share) const {
    for (int i = 0; i < kHeld; ++i) {
      const std::int64_t column = column_of(share, i / kChunk<T>) + i % kChunk<T>;
      if (column < share.width) row[column] = at[i];
    }
  }

  SIDESTREAM_INLINE float sum() const {
    float total = 0;
    for (int i = 0; i < kHeld; ++i) total += at[i];
    return total;
  }

  // Of the distances from `centre`.
  SIDESTREAM_INLINE float sum_of_squares(float centre, const Share& share) const {
    float total = 0;
    for (int i = 0; i < kHeld; ++i) {
      const float distance = has(share, i) ? at[i] - centre : 0;
      total += distance * distance;
    }
    return total;
  }

 private:
  SIDESTREAM_INLINE void load_one(const T* row, const Share& share, int c) {
    const std::int64_t column = column_of(share, c);
    float* held = at + c * kChunk<T>;
    for (int i = 0; i < kChunk<T>; ++i) held[i] = 0;
    if constexpr (kAccess == Access::kVector) {
      if (!has_chunk(share, c)) return;
      widen_chunk(load_chunk(row + column), held);
    } else {
      for (int i = 0; i < kChunk<T>; ++i) {
        if (column + i < share.width) held[i] = static_cast<float>(row[column + i]);
      }
    }
  }

  SIDESTREAM_INLINE void store_one(T* row, const Share& share, int c) const {
    const std::int64_t column = column_of(share, c);
    const float* held = at + c * kChunk<T>;
    if constexpr (kAccess == Access::kVector) {
      if (!has_chunk(share, c)) return;
      store_chunk(row + column, chunk_of<T>(held));
    } else {
      for (int i = 0; i < kChunk<T>; ++i) {
        if (column + i < share.width) row[column + i] = T(held[i]);
      }
    }
  }
};

// A HeldRow as it comes from memory, for loads that are under way while something else is computed:
// half the registers for 16-bit types.
template <typename T, int kHeld, Access kAccess>
class LoadedRow {
 public:
  SIDESTREAM_INLINE void load(const T* row, const Share& share) {
    if constexpr (kAccess == Access::kElement) {
      held_.load(row, share);
    } else {
      for (int c = 0; c < Held::kChunks; ++c) {
        const std::int64_t column = Held::column_of(share, c);
        chunks_[c] = Held::has_chunk(share, c) ? load_chunk(row + column) : Chunk<T>{};
      }
    }
  }

  // Of a thread all of whose chunks lie in the row.
  SIDESTREAM_INLINE void load_whole(const T* row, const Share& share) {
    if constexpr (kAccess == Access::kElement) {
      held_.load(row, share);
    } else {
      for (int c = 0; c < Held::kChunks; ++c)
        chunks_[c] = load_chunk(row + Held::column_of(share, c));
    }
  }

  SIDESTREAM_INLINE HeldRow<T, kHeld, kAccess> held() const {
    if constexpr (kAccess == Access::kElement) {
      return held_;
    } else {
      Held held;
      for (int c = 0; c < Held::kChunks; ++c) widen_chunk(chunks_[c], held.at + c * kChunk<T>);
      return held;
    }
  }

 private:
  using Held = HeldRow<T, kHeld, kAccess>;
  struct Nothing {};
  std::conditional_t<kAccess == Access::kElement, Held, Nothing> held_;
  Chunk<T> chunks_[kAccess == Access::kElement ? 1 : Held::kChunks];
};

}  // namespace sidestream::model::device
