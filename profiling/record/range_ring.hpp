// The ranges that one thread has finished, the newest so many of them: written by that thread
// without a lock and without memory being asked for, read by another one at any time. Where the
// reader is too slow the oldest are lost and counted.
//
// A sequence lock over slots: the writer raises `written_` after each slot, the reader copies slots
// and keeps those that the writer cannot have reached meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "profiling/record/range_record.hpp"

namespace sidestream::record {

class RangeRing {
 public:
  // A power of two; one range less is kept. Throws std::bad_alloc.
  explicit RangeRing(std::size_t capacity);
  RangeRing(const RangeRing&) = delete;
  RangeRing& operator=(const RangeRing&) = delete;

  // By one thread.
  void push(const RangeRecord& record) noexcept;

  struct Taken {
    std::vector<RangeRecord> records;
    std::uint64_t dropped = 0;
    // Where ranges were lost: all that ended at or after this time are there.
    std::optional<std::int64_t> complete_from_ns;
  };
  // What came since the last call. By one thread at a time, which may be another one.
  Taken take();

 private:
  // From the system itself: a heap may clear what it hands out, and then every page is used.
  struct Unmap {
    std::size_t bytes = 0;
    void operator()(PackedRange* slots) const noexcept;
  };
  static std::unique_ptr<PackedRange[], Unmap> untouched(std::size_t capacity);

  PackedRange& slot(std::uint64_t index) const noexcept { return slots_[index & (capacity_ - 1)]; }

  std::size_t capacity_;
  std::unique_ptr<PackedRange[], Unmap> slots_;  // untouched pages cost nothing
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::uint64_t taken_ = 0;
};

}  // namespace sidestream::record
