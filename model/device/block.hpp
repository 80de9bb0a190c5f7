// What the arithmetic of the device kernels asks of the threads that work together. It is written
// once, as templates over a Block: threads that run at the same time (thread_block.hpp), CUDA's or
// the processor's in a test, or threads that the processor goes through one after another
// (tests/model/device/host_block.hpp), so that every formula, every edge of a row and the order of
// every sum are tested on machines without a GPU.
//
// A Block has
//   int threads() const            a multiple of kWarp
//   Block::Local<State> name(block)  a State for each thread, in its registers; name.of(thread)
//   void each(f)                   f(thread) for every thread; nobody waits
//   V reduce(f, combine)           f(thread) -> V, float or Two, combined in each warp as a tree
//                                  (lane l with l + 16, then 8, 4, 2, 1), then the warps in order;
//                                  every thread waits, and gets the result
//   void lane_sums(f, g)           f(thread) -> float, added over the warps in order for each lane;
//                                  then g(lane, sum), once for each lane. Once in a kernel
//   void fetch(thread, place, from)  16 bytes are on their way from the device's memory to a place
//                                  of the block's own, which is this thread's and no other's
//   void wait_for_fetched(thread)  until all is there that this thread has fetched
//   Chunk<T> fetched<T>(thread, place)  what lies there; another fetch() may follow at once
// Threads of several warps see what others have read or written before a reduce() only after it; in
// a block of one warp nothing but the sum is handed over. Places are as many
// as the grid was given memory for (GridSize::memory_bytes).
#pragma once

#include "core/base/vectorize.hpp"

namespace sidestream::model::device {

constexpr int kWarp = 32;

struct Two {
  float first, second;
};

struct Add {
  SIDESTREAM_INLINE float operator()(float a, float b) const { return a + b; }
  SIDESTREAM_INLINE Two operator()(const Two& a, const Two& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

}  // namespace sidestream::model::device
