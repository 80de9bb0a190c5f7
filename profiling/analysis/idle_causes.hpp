// Why the device had nothing to do, as parts that add up to its idle time exactly.
//
// Each idle nanosecond goes to the first of these that the feeding host threads
// were in: waiting for data; inside a collective; waiting for a lock; waiting for
// the device (a synchronisation whose device work had ended), or on the way to the
// next launch after such a wait, which had emptied the queue; busy on the host, or
// launching too late. What is left is `other`: nothing in the trace explains it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiling/analysis/host_activity.hpp"
#include "profiling/analysis/interval_set.hpp"

namespace sidestream::analysis {

struct IdleCauses {
  std::int64_t data_ns = 0;
  std::int64_t host_ns = 0;
  std::int64_t sync_ns = 0;
  std::int64_t comm_ns = 0;
  std::int64_t lock_ns = 0;
  std::int64_t other_ns = 0;
  std::int64_t after_sync_ns = 0;  // of sync_ns: from the end of the wait to the next device work

  bool operator==(const IdleCauses&) const = default;
  IdleCauses& operator+=(const IdleCauses& other);
  std::int64_t sum_ns() const { return data_ns + host_ns + sync_ns + comm_ns + lock_ns + other_ns; }
};

// Of the moments of the window that are not in `busy`. Without steps a window is the whole trace:
// it is gone through in parts of so many intervals, which need little memory and change nothing.
inline constexpr std::size_t kIntervalsAtOnce = std::size_t{1} << 14;
IdleCauses idle_causes(Interval window, const IntervalSet& busy, const HostActivity& host,
                       const LaunchGaps& launch_gaps,
                       std::size_t intervals_at_once = kIntervalsAtOnce);

}  // namespace sidestream::analysis
