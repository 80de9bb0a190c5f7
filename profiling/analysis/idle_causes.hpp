// Why the device had nothing to do, as parts that add up to its idle time exactly.
//
// Each idle nanosecond goes to the first of these that the feeding host threads
// were in: waiting for data; inside a collective; waiting for a lock; waiting for
// the device (a synchronisation whose device work had ended); busy on the host, or
// launching too late. What is left is `other`: nothing in the trace explains it.
#pragma once

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

  std::int64_t sum_ns() const { return data_ns + host_ns + sync_ns + comm_ns + lock_ns + other_ns; }
};

IdleCauses idle_causes(const IntervalSet& idle, const HostActivity& host,
                       const IntervalSet& launch_gaps);

}  // namespace sidestream::analysis
