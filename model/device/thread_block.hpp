// A Block (block.hpp) whose threads run at the same time, each through the whole kernel: CUDA's
// (device_kernels.cu), or threads of the processor in a test, where a sanitizer sees races
// (tests/model/device/processor_threads.hpp).
//
// Threads is one of them, and has
//   int thread() const, threads() const
//   float of_lane_after(value, distance)  the value of the lane so many after this one's in its
//                                         warp, its own where there is none; all lanes call
//   float of_first_lane(value)            all lanes call
//   void wait_for_all()                   until every thread of the block is here
//   fetch(place, from), wait_for_fetched(), fetched<T>(place)  as a Block's, of this thread
#pragma once

#include <cstdint>

#include "model/device/block.hpp"
#include "model/device/chunk.hpp"
#include "model/device/geometry.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

// Of at most so many threads.
template <typename Threads, int kMostThreads>
class ThreadBlock {
  static_assert(kMostThreads <= kColumnSumThreads);

 public:
  // Of the whole block. One for each warp, twice: see reduce(). A single warp needs neither it nor
  // a barrier.
  struct Scratch {
    Two warps[2][kMostThreads / kWarp];
    float threads[kColumnSumThreads];
  };

  template <typename State>
  class Local {
   public:
    SIDESTREAM_KERNEL explicit Local(const ThreadBlock&) {}
    SIDESTREAM_KERNEL State& of(int) { return state_; }

   private:
    State state_;
  };

  SIDESTREAM_KERNEL ThreadBlock(const Threads& us, Scratch& scratch) : us_(us), scratch_(scratch) {}

  SIDESTREAM_KERNEL int threads() const { return us_.threads(); }

  SIDESTREAM_KERNEL void fetch(int, std::int64_t place, const void* from) {
    us_.fetch(place, from);
  }
  SIDESTREAM_KERNEL void wait_for_fetched(int) { us_.wait_for_fetched(); }
  template <typename T>
  SIDESTREAM_KERNEL Chunk<T> fetched(int, std::int64_t place) const {
    return us_.template fetched<T>(place);
  }

  template <typename Action>
  SIDESTREAM_KERNEL void each(const Action& action) const {
    action(us_.thread());
  }

  // Warps write into one half of the scratch and read it after the barrier; the next reduce() takes
  // the other half. Whoever writes into the first half again has met everyone at the barrier of
  // that one, after they had read: one barrier for each reduce() is enough.
  template <typename Make, typename Combine>
  SIDESTREAM_KERNEL auto reduce(const Make& make, const Combine& combine) {
    auto value = make(us_.thread());
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      value = combine(value, of_lane_after(value, distance));
    if constexpr (kMostThreads == kWarp) return of_first_lane(value);
    auto* warps = reinterpret_cast<decltype(value)*>(scratch_.warps[turn_]);
    turn_ ^= 1;
    const auto thread = static_cast<unsigned>(us_.thread());  // so that kWarp divides by a shift
    if (thread % kWarp == 0) warps[thread / kWarp] = value;
    us_.wait_for_all();
    const int count = threads() / kWarp;
    auto total = warps[0];
    for (int warp = 1; warp < count; ++warp) total = combine(total, warps[warp]);
    return total;
  }

  // Once in a kernel: its scratch is written without waiting for who still reads it.
  template <typename Make, typename Take>
  SIDESTREAM_KERNEL void lane_sums(const Make& make, const Take& take) {
    scratch_.threads[us_.thread()] = make(us_.thread());
    us_.wait_for_all();
    if (us_.thread() >= kWarp) return;
    float total = scratch_.threads[us_.thread()];
    for (int i = us_.thread() + kWarp; i < threads(); i += kWarp) total += scratch_.threads[i];
    take(us_.thread(), total);
  }

 private:
  SIDESTREAM_KERNEL float of_lane_after(float value, int distance) {
    return us_.of_lane_after(value, distance);
  }
  SIDESTREAM_KERNEL Two of_lane_after(const Two& value, int distance) {
    return {us_.of_lane_after(value.first, distance), us_.of_lane_after(value.second, distance)};
  }
  SIDESTREAM_KERNEL float of_first_lane(float value) { return us_.of_first_lane(value); }
  SIDESTREAM_KERNEL Two of_first_lane(const Two& value) {
    return {us_.of_first_lane(value.first), us_.of_first_lane(value.second)};
  }

  Threads us_;
  Scratch& scratch_;
  int turn_ = 0;
};

}  // namespace sidestream::model::device
