// Memory of each rank and device over the window: how much, when it was most, and what it was for.
//
// A category is the phase in which memory was taken: what forward takes and still holds at the peak
// are mostly activations, what backward takes gradients. Allocations carry no more than that; what
// was there before the trace began is "before the trace". Of host memory the profiler counts only
// what was taken since it started: weights are no part of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct MemoryCategory {
  std::string name;  // "forward", "backward", "data", ...; "other": in no phase
  std::int64_t bytes_at_peak = 0;
  std::int64_t allocations = 0;  // over the whole trace
  std::int64_t allocated_bytes = 0;
};

struct MemoryPoint {
  std::int64_t time_ns = 0;  // on the rank's own clock
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = -1;  // below 0: not known
};

struct MemoryUse {
  const trace::RankTimeline* timeline = nullptr;
  int rank = 0;
  int device = -1;  // below 0: the host's memory
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_reserved_bytes = -1;
  std::int64_t peak_time_ns = 0;
  std::int64_t allocations = 0;
  std::int64_t releases = 0;
  std::vector<MemoryCategory> categories;  // by bytes at the peak, most first
  std::vector<MemoryPoint> curve;          // the highest of each of at most 1000 stretches of time
};

std::vector<MemoryUse> memory_use(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
