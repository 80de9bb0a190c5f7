// Blocks whose threads are the processor's, all at once: what a warp, a barrier and a block's own
// memory do for CUDA's threads, in C++. The thread sanitizer then sees a place that two of them use
// without a barrier in between, in a block's memory as in that of the device. A shuffle orders the
// lanes of its warp here; CUDA does not promise that.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/device/kernels_on.hpp"
#include "model/device/thread_block.hpp"

namespace sidestream::model::device {

// Not std::barrier: who sleeps in one of libstdc++ counts itself in a place that all barriers
// share, which orders threads that do not wait for each other in the eyes of the sanitizer.
class Barrier {
 public:
  explicit Barrier(int threads) {
    if (pthread_barrier_init(&barrier_, nullptr, static_cast<unsigned>(threads)) != 0)
      throw std::runtime_error("no barrier for " + std::to_string(threads) + " threads");
  }
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

// What the threads of one block share.
class SharedByThreads {
 public:
  SharedByThreads(int threads, std::int64_t memory_bytes)
      : all_(threads), places_(static_cast<std::size_t>(memory_bytes / kChunkBytes)) {
    for (int first = 0; first < threads; first += kWarp) warps_.push_back(std::make_unique<Warp>());
  }

  void forget_places() {
    for (Place& place : places_) place.fill(std::byte{0xFF});
  }

  struct Warp {
    Barrier all{kWarp};
    float lanes[2][kWarp] = {};
  };
  using Place = std::array<std::byte, kChunkBytes>;

  void wait_for_all() { all_.wait(); }
  Warp& warp_of(int thread) { return *warps_[static_cast<std::size_t>(thread / kWarp)]; }
  Place& place(std::int64_t index) { return places_.at(static_cast<std::size_t>(index)); }

 private:
  Barrier all_;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::vector<Place> places_;
};

// Threads of thread_block.hpp.
class ProcessorThread {
 public:
  ProcessorThread(SharedByThreads& shared, int thread, int threads)
      : shared_(shared), thread_(thread), threads_(threads) {}

  int thread() const { return thread_; }
  int threads() const { return threads_; }

  float of_lane_after(float value, int distance) {
    const int lane = thread_ % kWarp, other = lane + distance;
    return exchanged(value, other < kWarp ? other : lane);
  }
  float of_first_lane(float value) { return exchanged(value, 0); }
  void wait_for_all() { shared_.wait_for_all(); }

  // It may arrive at any time until it is waited for: at once, and again as late as can be.
  void fetch(std::int64_t place, const void* from) {
    under_way_.emplace_back(place, from);
    arrive(place, from);
  }
  void wait_for_fetched() {
    for (const auto& [place, from] : under_way_) arrive(place, from);
    under_way_.clear();
  }
  template <typename T>
  Chunk<T> fetched(std::int64_t place) const {
    return std::bit_cast<Chunk<T>>(shared_.place(place));
  }

 private:
  // Lanes write into one half and read after the barrier, as warps in ThreadBlock::reduce().
  float exchanged(float value, int other) {
    SharedByThreads::Warp& warp = shared_.warp_of(thread_);
    float* lanes = warp.lanes[turn_];
    turn_ ^= 1;
    lanes[thread_ % kWarp] = value;
    warp.all.wait();
    return lanes[other];
  }
  void arrive(std::int64_t place, const void* from) {
    std::memcpy(shared_.place(place).data(), from, kChunkBytes);
  }

  SharedByThreads& shared_;
  int thread_, threads_, turn_ = 0;
  std::vector<std::pair<std::int64_t, const void*>> under_way_;
};

// One block after another, each with all of its threads at once.
struct ThreadGrid {
  std::int64_t most_blocks = std::numeric_limits<std::int64_t>::max();  // as HostGrid's

  std::int64_t most_memory_bytes() const { return 64 * 1024; }

  template <typename Body>
  void run_at_once(GridSize size, const Body& body, DeviceStream stream) const {
    size.blocks_x = std::min<std::int64_t>(size.blocks_x, 3);
    run(size, body, stream);
  }

  template <typename Body>
  void run(const GridSize& size, const Body& body, DeviceStream /*stream*/) const {
    using Block = ThreadBlock<ProcessorThread, Body::kMostThreads>;
    const int count = static_cast<int>(size.threads);
    require(size.threads % kWarp == 0 && size.threads <= Body::kMostThreads, Body::kName,
            std::to_string(size.threads) + " threads");
    const std::int64_t blocks_x = std::min(size.blocks_x, most_blocks);
    SharedByThreads shared(count, size.memory_bytes);
    typename Block::Scratch scratch;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < count; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::int64_t index = 0; index < blocks_x * size.blocks_y; ++index) {
          if (thread == 0) forget(shared, scratch);
          shared.wait_for_all();
          Block block(ProcessorThread(shared, thread, count), scratch);
          body(block, BlockPlace{index % blocks_x, index / blocks_x, blocks_x, size.blocks_y});
          shared.wait_for_all();
        }
      });
    }
  }

 private:
  // NaN, for who reads what the last block left.
  template <typename Scratch>
  static void forget(SharedByThreads& shared, Scratch& scratch) {
    std::memset(static_cast<void*>(&scratch), 0xFF, sizeof(scratch));
    shared.forget_places();
  }
};

using ThreadKernels = KernelsOn<ThreadGrid>;

}  // namespace sidestream::model::device
