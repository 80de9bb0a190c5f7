// Rows of several operands on their way into a block's own memory: the next ones arrive while one
// is computed, and take no registers meanwhile.
#pragma once

#include <cstdint>

#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

// A thread fetches what it is going to take itself, and waits for nobody else: chunk c of operand o
// has place (o * kChunks + c) * threads + thread of the block. Where rows are no whole chunks, or
// of fp32, whose chunks would need twice the room, they are loaded when they are taken.
template <typename T, int kHeld, Access kAccess>
class FetchedRow {
  using Held = HeldRow<T, kHeld, kAccess>;

 public:
  static constexpr bool kAhead = kAccess == Access::kVector && kIsNarrow<T>;

  // Of a block's memory, for so many operands.
  static constexpr std::int64_t bytes(std::int64_t threads, int operands) {
    return kAhead ? operands * Held::kChunks * threads * kChunkBytes : 0;
  }

  // row null: there is none.
  template <typename Block>
  SIDESTREAM_KERNEL static void fetch(Block& block, int operand, const T* row, const Share& share) {
    if constexpr (kAhead) {
      if (row == nullptr) return;
      for (int c = 0; c < Held::kChunks; ++c) {
        if (Held::has_chunk(share, c))
          block.fetch(share.thread, place(operand, c, share), row + Held::column_of(share, c));
      }
    }
  }

  // After the thread has waited. `next` then takes its places; null: there is none.
  template <typename Block>
  SIDESTREAM_KERNEL static Held take(Block& block, int operand, const T* row, const T* next,
                                     const Share& share) {
    Held held;
    if constexpr (kAhead) {
      held.clear();
      for (int c = 0; c < Held::kChunks; ++c) {
        const std::int64_t at = place(operand, c, share);
        if (!Held::has_chunk(share, c)) continue;
        const Chunk<T> chunk = block.template fetched<T>(share.thread, at);
        if (next != nullptr) block.fetch(share.thread, at, next + Held::column_of(share, c));
        widen_chunk(chunk, held.at + c * kChunk<T>);
      }
    } else {
      held.load(row, share);
    }
    return held;
  }

 private:
  SIDESTREAM_KERNEL static std::int64_t place(int operand, int chunk, const Share& share) {
    return (operand * Held::kChunks + chunk) * share.threads + share.thread;
  }
};

}  // namespace sidestream::model::device
