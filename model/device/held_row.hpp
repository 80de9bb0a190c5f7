// The part of a row that one thread holds in its registers, as floats, and its way from and to
// memory: 16 bytes at a time where the addresses allow it.
#pragma once

#include <cstdint>

#include "core/base/vectorize.hpp"
#include "model/device/chunk.hpp"

namespace sidestream::model::device {

// kVector: every row begins at a multiple of 16 bytes and has whole chunks. kElement: one element
// at a time, in the same places of the same threads, for widths and addresses that are neither; the
// same numbers at a fraction of the speed.
enum class Access { kVector, kElement };

// What becomes of a number that is written as a T and read again.
template <typename T>
SIDESTREAM_INLINE float rounded_to(float value) {
  return static_cast<float>(T(value));
}

// A thread among those that share a row.
struct Share {
  int thread, threads;
  std::int64_t width;
};

// Chunk c of a thread begins at column (c * threads + thread) * kChunk: neighbours read what is
// side by side. Columns from the width on hold 0.
template <typename T, int kHeld, Access kAccess>
struct HeldRow {
  static_assert(kHeld % kChunk<T> == 0);
  static constexpr int kChunks = kHeld / kChunk<T>;
  float at[kHeld];

  SIDESTREAM_INLINE static std::int64_t column_of(const Share& share, int chunk) {
    return (static_cast<std::int64_t>(chunk) * share.threads + share.thread) * kChunk<T>;
  }

  SIDESTREAM_INLINE void clear() {
    for (int i = 0; i < kHeld; ++i) at[i] = 0;
  }

  SIDESTREAM_INLINE void load(const T* row, const Share& share) {
    for (int c = 0; c < kChunks; ++c) load_one(row, share, c);
  }

  SIDESTREAM_INLINE void store(T* row, const Share& share) const {
    for (int c = 0; c < kChunks; ++c) store_one(row, share, c);
  }

  // Sums of columns, in fp32 whatever T is.
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
      const std::int64_t column = column_of(share, i / kChunk<T>) + i % kChunk<T>;
      const float distance = column < share.width ? at[i] - centre : 0;
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
      if (column >= share.width) return;
      const Chunk<T> chunk = load_chunk(row + column);
      for (int i = 0; i < kChunk<T>; ++i) held[i] = static_cast<float>(chunk.at[i]);
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
      if (column >= share.width) return;
      Chunk<T> chunk;
      for (int i = 0; i < kChunk<T>; ++i) chunk.at[i] = T(held[i]);
      store_chunk(row + column, chunk);
    } else {
      for (int i = 0; i < kChunk<T>; ++i) {
        if (column + i < share.width) row[column + i] = T(held[i]);
      }
    }
  }
};

}  // namespace sidestream::model::device
