#include "profiling/trace/clock_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sidestream::trace {
namespace {

// Offsets less the first of them, so that a double holds them to the nanosecond.
struct Line {
  double away_ns;  // from the origin, on the rank's clock
  double offset_ns;
};

class Range {
 public:
  Range(const ClockBounds& bounds, std::int64_t origin_ns)
      : base_ns_(bounds.not_before.front().reference_ns - bounds.not_before.front().time_ns) {
    lower_ = lines(bounds.not_before, origin_ns);
    upper_ = lines(bounds.not_after, origin_ns);
  }

  // Of the offset at the origin, with a drift. The first is convex in it, the second concave.
  double low(double ppm) const {
    double most = -std::numeric_limits<double>::infinity();
    for (const Line& line : lower_) most = std::max(most, at_origin(line, ppm));
    return most;
  }
  double high(double ppm) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Line& line : upper_) least = std::min(least, at_origin(line, ppm));
    return least;
  }
  double contradiction(double ppm) const { return low(ppm) - high(ppm); }
  std::int64_t base_ns() const { return base_ns_; }

 private:
  static double at_origin(const Line& line, double ppm) {
    return line.offset_ns - ppm * 1e-6 * line.away_ns;
  }
  std::vector<Line> lines(const std::vector<ClockBound>& bounds, std::int64_t origin_ns) const {
    std::vector<Line> list;
    for (const ClockBound& one : bounds)
      list.push_back({static_cast<double>(one.time_ns - origin_ns),
                      static_cast<double>(one.reference_ns - one.time_ns - base_ns_)});
    return list;
  }

  std::int64_t base_ns_;
  std::vector<Line> lower_, upper_;
};

constexpr int kHalvings = 60;

// Where a convex function is least.
template <typename Function>
double least_at(const Function& function, double from, double to) {
  for (int i = 0; i < kHalvings; ++i) {
    const double third = (to - from) / 3;
    if (function(from + third) <= function(to - third))
      to -= third;
    else
      from += third;
  }
  return (from + to) / 2;
}

// Where a convex function crosses 0, between a place where it is not above and the end of the
// range.
template <typename Function>
double crossing(const Function& function, double inside, double end) {
  if (function(end) <= 0) return end;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (inside + end) / 2;
    (function(middle) <= 0 ? inside : end) = middle;
  }
  return end;
}

}  // namespace

std::optional<ClockRange> clock_range(const ClockBounds& bounds, std::int64_t origin_ns) {
  if (bounds.not_before.empty() || bounds.not_after.empty()) return std::nullopt;
  const Range range(bounds, origin_ns);
  const auto contradiction = [&](double ppm) { return range.contradiction(ppm); };
  const double inside = least_at(contradiction, -kMostDriftPpm, kMostDriftPpm);
  if (contradiction(inside) > 0) return std::nullopt;
  ClockRange found{.base_ns = range.base_ns(),
                   .low_ppm = crossing(contradiction, inside, -kMostDriftPpm),
                   .high_ppm = crossing(contradiction, inside, kMostDriftPpm)};
  const auto low = [&](double ppm) { return range.low(ppm); };
  const auto minus_high = [&](double ppm) { return -range.high(ppm); };
  found.low_ns = low(least_at(low, found.low_ppm, found.high_ppm));
  found.high_ns = -minus_high(least_at(minus_high, found.low_ppm, found.high_ppm));
  found.low_ns = std::min(found.low_ns, found.high_ns);  // what the search left of no width
  return found;
}

void keep_within(ClockFit& fit, const ClockBounds& bounds) {
  RankClock& clock = fit.clock;
  if (std::abs(clock.drift_ppm) <= kMostDriftPpm)
    fit.drift_uncertainty_ppm =
        std::min(fit.drift_uncertainty_ppm, kMostDriftPpm + std::abs(clock.drift_ppm));
  const auto range = clock_range(bounds, clock.origin_ns);
  if (!range) return;
  const double drift = std::clamp(clock.drift_ppm, range->low_ppm, range->high_ppm);
  const double drift_moved = std::abs(drift - clock.drift_ppm);
  clock.drift_ppm = drift;
  fit.drift_uncertainty_ppm = std::min(fit.drift_uncertainty_ppm + drift_moved,
                                       std::max(range->high_ppm - drift, drift - range->low_ppm));
  const auto offset = static_cast<double>(clock.offset_ns - range->base_ns);
  const double inside = std::clamp(offset, range->low_ns, range->high_ns);
  clock.offset_ns += std::llround(inside - offset);
  const double certain_ns = std::max(range->high_ns - inside, inside - range->low_ns);
  constexpr double kRoundingUs = 0.001;
  fit.uncertainty_us = std::min(fit.uncertainty_us + std::abs(inside - offset) / 1000,
                                certain_ns / 1000 + kRoundingUs);
}

}  // namespace sidestream::trace
