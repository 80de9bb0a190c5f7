// What the recorder keeps for one thread: ranges that are open, ranges that have ended. Outlives
// the thread until it has been taken.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "profiling/record/open_ranges.hpp"
#include "profiling/record/range_ring.hpp"

namespace sidestream::record {

class ThreadLog {
 public:
  explicit ThreadLog(std::size_t capacity) : ring(capacity), thread_id(::gettid()) {}

  OpenRanges open;
  RangeRing ring;
  const std::int64_t thread_id;
  std::atomic<bool> thread_has_ended{false};
  // Of the reader: parts of ranges that lie behind its last take, and what it found open there.
  std::vector<RangeRecord> rest;
  std::vector<RangeRecord> seen_open;
};

}  // namespace sidestream::record
