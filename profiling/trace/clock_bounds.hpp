// What is certain about a rank's clock: moments of which one is known to come before the other.
//
// No rank leaves a collective before the last one has entered it. Each such pair of moments on two
// clocks is a bound of the offset between them, from below or from above; together they leave a
// range. Unlike a fit (clock_fit.hpp) it holds whatever the scatter, so that it is both a check of
// the fit and a limit of its uncertainty.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiling/trace/clock_fit.hpp"

namespace sidestream::trace {

// Two clocks drift apart by less: each keeps 100 ppm, as quartz does.
inline constexpr double kMostDriftPpm = 200;

struct ClockBound {
  std::int64_t time_ns = 0;       // on the rank's own clock
  std::int64_t reference_ns = 0;  // on the reference's: at time_ns at the latest, or earliest
};

struct ClockBounds {
  std::vector<ClockBound> not_before;  // the reference shows reference_ns or more at time_ns
  std::vector<ClockBound> not_after;   // or less
};

struct ClockRange {
  // Of the offset at the origin that was asked for, less base_ns: a double does not hold the
  // nanoseconds of an epoch.
  std::int64_t base_ns = 0;
  double low_ns = 0;
  double high_ns = 0;
  double low_ppm = 0;  // of the drift
  double high_ppm = 0;
};

// Nothing without a bound on each side, and for bounds that contradict each other.
std::optional<ClockRange> clock_range(const ClockBounds& bounds, std::int64_t origin_ns);

// Moves a fit into the range, and limits its uncertainty to what the range leaves.
void keep_within(ClockFit& fit, const ClockBounds& bounds);

}  // namespace sidestream::trace
