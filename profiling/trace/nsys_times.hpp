// When a row of an export of Nsight Systems was, if what stands there can be.
#pragma once

#include <cstdint>
#include <optional>

#include "profiling/trace/sqlite_file.hpp"
#include "profiling/trace/time_fault.hpp"

namespace sidestream::trace {

struct NsysTimes {
  std::int64_t start_ns = 0;  // since the recording began
  std::int64_t duration_ns = 0;
  std::optional<TimeFault> fault = {};  // its text holds as long as the row
};

// Of the columns that have the start and the end, in whole nanoseconds. Sums of a start and a
// duration without a fault, and of one with a base time, do not overflow.
NsysTimes nsys_times_of(const SqliteRows& rows, int start_column, int end_column);

// Of a column named "timestamp", in whole nanoseconds; the duration is 0.
NsysTimes nsys_instant_of(const SqliteRows& rows, int column);

}  // namespace sidestream::trace
