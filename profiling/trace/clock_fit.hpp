// A straight line through pairs of clock readings: offset and drift of one rank against another.
#pragma once

#include <cstdint>
#include <vector>

#include "profiling/trace/clock_model.hpp"

namespace sidestream::trace {

// The same moment on two clocks.
struct ClockPair {
  std::int64_t time_ns = 0;       // on the rank's own clock
  std::int64_t reference_ns = 0;  // on the reference's
};

struct ClockFit {
  RankClock clock;
  double uncertainty_us = 0;         // of the offset, at the middle of the pairs
  double drift_uncertainty_ppm = 0;  // 0 drift inside it: drift is taken as 0
};

// The middle slope between pairs far apart, then the median offset: half of the pairs may be wrong.
// Drift is fitted only when the pairs show more of it than their scatter explains. Needs one pair
// at least.
ClockFit fit_clock(std::vector<ClockPair> pairs);

}  // namespace sidestream::trace
