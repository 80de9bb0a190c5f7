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
  std::int64_t slack_ns = 0;      // the two moments are at most this far apart
};

struct ClockFit {
  RankClock clock;
  double uncertainty_us = 0;         // of the offset, at clock.origin_ns
  double drift_uncertainty_ppm = 0;  // 0 drift inside it: drift is taken as 0
};

enum class Drift { kFit, kNone };

// The middle slope between pairs far apart, then the median offset:
// half of the pairs may be wrong. Drift is fitted only when the pairs
// show more of it than their scatter explains. Needs one pair at least.
//
// Uncertainty from six pairs on: the distance that 95 % of them keep, widened for few pairs by
// 1 + 3 / sqrt(n), for the drift by 1 + 5 / sqrt(n). Fewer pairs have no scatter worth the name:
// there it is the slack of the best pair, and 100 ppm, which quartz clocks keep.
ClockFit fit_clock(std::vector<ClockPair> pairs, Drift drift = Drift::kFit);

}  // namespace sidestream::trace
