// Operations in flight: started on one thread, ended on any. A fixed table without locks; an
// operation that is still there when its place is needed again is lost and counted, and so is one
// that needs a place which another thread is just writing (it was halted there while a thousand
// operations started).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiling/record/range_record.hpp"

namespace sidestream::record {

class Flights {
 public:
  static constexpr std::size_t kPlaces = 1024;

  // Never 0.
  std::uint64_t start(const RangeRecord& range) noexcept {
    const std::uint64_t id = last_.fetch_add(1, std::memory_order_relaxed) + 1;
    Place& place = places_[id % kPlaces];
    std::uint64_t before = place.id.load(std::memory_order_relaxed);
    const bool is_mine =
        before != kBeingWritten &&
        place.id.compare_exchange_strong(before, kBeingWritten, std::memory_order_acquire,
                                         std::memory_order_relaxed);
    if (before != 0 || !is_mine) lost_.fetch_add(1, std::memory_order_relaxed);
    if (!is_mine) return id;
    std::atomic_thread_fence(std::memory_order_release);
    store_range(place.range, range);
    place.id.store(id, std::memory_order_release);
    return id;
  }

  // Nothing for an operation that was lost.
  std::optional<RangeRecord> find(std::uint64_t id) noexcept {
    Place& place = places_[id % kPlaces];
    if (place.id.load(std::memory_order_acquire) != id) return std::nullopt;
    return load_unless_changed(place, id);
  }

  // After find(). What was written before it is seen by whoever no longer sees the operation.
  void end(std::uint64_t id) noexcept {
    places_[id % kPlaces].id.compare_exchange_strong(id, 0, std::memory_order_release,
                                                     std::memory_order_relaxed);
  }

  // From any thread, in the order of their starts.
  std::vector<RangeRecord> look() {
    std::vector<RangeRecord> found;
    for (Place& place : places_) {
      const std::uint64_t before = place.id.load(std::memory_order_acquire);
      if (before == 0 || before == kBeingWritten) continue;
      if (const auto range = load_unless_changed(place, before)) found.push_back(*range);
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    return found;
  }

  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  struct Place {
    std::atomic<std::uint64_t> id{0};  // 0: free
    PackedRange range = {};
  };
  static constexpr std::uint64_t kBeingWritten = ~std::uint64_t{0};

  static std::optional<RangeRecord> load_unless_changed(Place& place, std::uint64_t id) noexcept {
    const RangeRecord range = load_range(place.range);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (place.id.load(std::memory_order_relaxed) != id) return std::nullopt;
    return range;
  }

  std::atomic<std::uint64_t> last_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::array<Place, kPlaces> places_;
};

}  // namespace sidestream::record
