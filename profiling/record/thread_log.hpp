// What the recorder keeps for one thread: ranges that are open, ranges that have ended. Outlives
// the thread until it has been taken.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "profiling/record/open_ranges.hpp"
#include "profiling/record/range_ring.hpp"

namespace sidestream::record {

class ThreadLog {
 public:
  // By its thread: the first range makes the ring. False: there is no memory for one.
  bool keep(const RangeRecord& range, std::size_t capacity) noexcept {
    if (!owned_ && !make_ring(capacity)) return false;
    owned_->push(range);
    return true;
  }
  // By the reader.
  RangeRing::Taken take() {
    RangeRing* const ring = ring_.load(std::memory_order_acquire);
    return ring == nullptr ? RangeRing::Taken{} : ring->take();
  }

  OpenRanges open;
  const std::int64_t thread_id = ::gettid();
  std::atomic<bool> thread_has_ended{false};
  // Of the reader: parts of ranges that lie behind its last take, and what it found open there.
  std::vector<RangeRecord> rest;
  std::vector<RangeRecord> seen_open;

 private:
  bool make_ring(std::size_t capacity) noexcept {
    try {
      owned_ = std::make_unique<RangeRing>(capacity);
    } catch (const std::bad_alloc&) {
      return false;
    }
    ring_.store(owned_.get(), std::memory_order_release);
    return true;
  }

  std::unique_ptr<RangeRing> owned_;       // of the thread
  std::atomic<RangeRing*> ring_{nullptr};  // the same, for the reader
};

}  // namespace sidestream::record
