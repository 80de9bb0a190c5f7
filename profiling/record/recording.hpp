// What a recorder hands over: the ranges of a process between two times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiling/record/clock.hpp"
#include "profiling/record/range_record.hpp"

namespace sidestream::record {

struct ThreadRanges {
  std::int64_t thread_id = 0;  // the system's
  std::string name;
  std::vector<RangeRecord> ranges;  // finished ones in the order of their ends, then open ones
};

// What take() hands over.
struct Recording {
  ClockReading begin;  // both clocks at the take before, or when keeping began
  ClockReading end;
  std::int64_t step = 0;  // the newest that had begun
  std::vector<ThreadRanges> threads;
  std::vector<RangeRecord> in_flight;  // operations that belong to no thread
  std::uint64_t dropped = 0;
  // For each thread, in which none would have been lost for want of room; 0: none was.
  std::uint64_t room_needed = 0;
  // Threads lose their oldest ranges, each those that its own ring has no room for. What begins
  // earlier than this lacks some; nothing: it is not known to.
  std::optional<std::int64_t> complete_from_ns;
};

}  // namespace sidestream::record
