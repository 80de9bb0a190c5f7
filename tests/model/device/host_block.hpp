// A block of threads that the processor goes through one after another: all of them in one phase,
// then in the next, with the sums of ThreadBlock (thread_block.hpp) in the same order. The last
// thread goes first, so that what relies on an earlier thread's being first is seen; registers
// begin as NaN, so that what reads them before it writes is seen, too.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "model/device/block.hpp"
#include "model/device/kernels_on.hpp"

namespace sidestream::model::device {

class HostBlock {
 public:
  explicit HostBlock(int threads, std::int64_t memory_bytes = 0)
      : threads_(threads), places_(static_cast<std::size_t>(memory_bytes / kChunkBytes)) {}

  template <typename State>
  class Local {
   public:
    explicit Local(const HostBlock& block) : states_(static_cast<std::size_t>(block.threads())) {
      static_assert(std::is_trivially_copyable_v<State>);
      std::memset(static_cast<void*>(states_.data()), 0xFF, states_.size() * sizeof(State));
    }
    State& of(int thread) { return states_.at(static_cast<std::size_t>(thread)); }

   private:
    std::vector<State> states_;
  };

  int threads() const { return threads_; }

  // What is on its way is there when its thread has waited, and not before.
  void fetch(int thread, std::int64_t index, const void* from) {
    Place& place = places_.at(static_cast<std::size_t>(index));
    place.thread = thread;
    place.from = from;
  }
  void wait_for_fetched(int thread) {
    for (Place& place : places_) {
      if (place.thread != thread || place.from == nullptr) continue;
      std::memcpy(place.bytes.data(), place.from, place.bytes.size());
      place.from = nullptr;
    }
  }
  template <typename T>
  Chunk<T> fetched(int thread, std::int64_t index) const {
    const Place& place = places_.at(static_cast<std::size_t>(index));
    if (place.thread != thread || place.from != nullptr)
      throw std::logic_error("what was fetched is another thread's, or still on its way");
    return std::bit_cast<Chunk<T>>(place.bytes);
  }

  template <typename Action>
  void each(const Action& action) const {
    for (int thread = threads_ - 1; thread >= 0; --thread) action(thread);
  }

  template <typename Make, typename Combine>
  auto reduce(const Make& make, const Combine& combine) {
    using Value = decltype(make(0));
    std::vector<Value> values(static_cast<std::size_t>(threads_));
    each([&](int thread) { values[static_cast<std::size_t>(thread)] = make(thread); });
    Value total = warp_total(values, 0, combine);
    for (int first = kWarp; first < threads_; first += kWarp)
      total = combine(total, warp_total(values, first, combine));
    return total;
  }

  template <typename Make, typename Take>
  void lane_sums(const Make& make, const Take& take) {
    std::vector<float> values(static_cast<std::size_t>(threads_));
    each([&](int thread) { values[static_cast<std::size_t>(thread)] = make(thread); });
    for (int lane = 0; lane < kWarp; ++lane) {
      float total = values.at(static_cast<std::size_t>(lane));
      for (int i = lane + kWarp; i < threads_; i += kWarp)
        total += values.at(static_cast<std::size_t>(i));
      take(lane, total);
    }
  }

 private:
  // Lane l with the one `distance` above it, as shuffles do; those without one keep their own.
  template <typename Value, typename Combine>
  static Value warp_total(const std::vector<Value>& values, int first, const Combine& combine) {
    std::vector<Value> lanes(values.begin() + first, values.begin() + first + kWarp);
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      for (int lane = 0; lane < distance; ++lane) {
        auto& own = lanes[static_cast<std::size_t>(lane)];
        own = combine(own, lanes[static_cast<std::size_t>(lane + distance)]);
      }
    }
    return lanes.front();
  }

  struct Place {
    std::array<std::byte, kChunkBytes> bytes;
    const void* from = nullptr;  // null: nothing is on its way
    int thread = -1;
  };

  int threads_;
  std::vector<Place> places_;
};

// Blocks in no particular order on a GPU: backwards here.
struct HostGrid {
  // Called with the name of each kernel and its stream.
  std::function<void(const char* kernel, DeviceStream stream)> on_launch = [](const char*,
                                                                              DeviceStream) {};
  // As if there were fewer: each then goes through several rows. Where blocks share the rows out.
  std::int64_t most_blocks = std::numeric_limits<std::int64_t>::max();
  // So little that long rows of logits are not held as a whole.
  std::int64_t memory_bytes = 64 * 1024;

  std::int64_t most_memory_bytes() const { return memory_bytes; }

  // Few, so that each goes through several rows.
  template <typename Body>
  void run_at_once(GridSize size, const Body& body, DeviceStream stream) const {
    size.blocks_x = std::min<std::int64_t>(size.blocks_x, 7);
    run(size, body, stream);
  }

  template <typename Body>
  void run(const GridSize& size, const Body& body, DeviceStream stream) const {
    require(size.threads % kWarp == 0 && size.threads <= Body::kMostThreads, Body::kName,
            std::to_string(size.threads) + " threads");
    on_launch(Body::kName, stream);
    const std::int64_t blocks_x = std::min(size.blocks_x, most_blocks);
    for (std::int64_t y = size.blocks_y - 1; y >= 0; --y) {
      for (std::int64_t x = blocks_x - 1; x >= 0; --x) {
        HostBlock block(static_cast<int>(size.threads), size.memory_bytes);
        body(block, BlockPlace{x, y, blocks_x, size.blocks_y});
      }
    }
  }
};

// All kernels of all types: compiled once, in host_kernels.cpp.
extern template class KernelsOn<HostGrid>;
using HostKernels = KernelsOn<HostGrid>;

}  // namespace sidestream::model::device
