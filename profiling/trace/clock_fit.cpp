#include "profiling/trace/clock_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "profiling/statistics/median.hpp"

namespace sidestream::trace {
namespace {

std::int64_t median_offset(const std::vector<ClockPair>& pairs, const RankClock& clock) {
  std::vector<std::int64_t> offsets;
  for (const ClockPair& pair : pairs)
    offsets.push_back(pair.reference_ns - clock.to_common(pair.time_ns));
  return statistics::upper_median(std::move(offsets));
}

double spread_ns(const std::vector<ClockPair>& pairs, const RankClock& clock) {
  std::vector<double> distances;
  for (const ClockPair& pair : pairs)
    distances.push_back(
        std::abs(static_cast<double>(pair.reference_ns - clock.to_common(pair.time_ns))));
  return statistics::quantile(std::move(distances), 0.95);
}

// Ten times as far off as a crystal that is broken: two damaged pairs have any slope.
constexpr double kMostSlopePpm = 1e5;

// Theil's slope over pairs half of the list apart: n / 2 slopes instead of all n squared.
double middle_slope_ppm(const std::vector<ClockPair>& pairs) {
  const std::size_t apart = pairs.size() / 2;
  std::vector<double> slopes;
  for (std::size_t i = 0; i + apart < pairs.size(); ++i) {
    const ClockPair &a = pairs[i], &b = pairs[i + apart];
    const auto time = static_cast<double>(b.time_ns - a.time_ns);
    const std::int64_t grown_ns = (b.reference_ns - b.time_ns) - (a.reference_ns - a.time_ns);
    if (time > 0) slopes.push_back(static_cast<double>(grown_ns) / time * 1e6);
  }
  return std::clamp(statistics::quantile(std::move(slopes), 0.5), -kMostSlopePpm, kMostSlopePpm);
}

constexpr std::size_t kLeastForScatter = 6;
constexpr double kQuartzPpm = 100;

double widening(double by, std::size_t pairs) {
  return 1 + by / std::sqrt(static_cast<double>(pairs));
}

double seconds_of(const std::vector<ClockPair>& pairs) {
  return static_cast<double>(pairs.back().time_ns - pairs.front().time_ns) / 1e9;
}

// The offset is off each pair by at most that pair's slack.
double slack_us(const std::vector<ClockPair>& pairs, const RankClock& clock) {
  double least_ns = std::numeric_limits<double>::max();
  for (const ClockPair& pair : pairs) {
    const auto distance =
        static_cast<double>(std::abs(pair.reference_ns - clock.to_common(pair.time_ns)));
    least_ns = std::min(least_ns, distance + static_cast<double>(pair.slack_ns));
  }
  return least_ns / 1000 + kQuartzPpm * seconds_of(pairs);
}

ClockFit fit_with(const std::vector<ClockPair>& pairs, double drift_ppm) {
  ClockFit fit;
  fit.clock = {
      .offset_ns = 0, .drift_ppm = drift_ppm, .origin_ns = pairs[pairs.size() / 2].time_ns};
  fit.clock.offset_ns = median_offset(pairs, fit.clock);
  const bool few = pairs.size() < kLeastForScatter;
  fit.uncertainty_us = few ? slack_us(pairs, fit.clock)
                           : spread_ns(pairs, fit.clock) / 1000 * widening(3, pairs.size());
  return fit;
}

}  // namespace

ClockFit fit_clock(std::vector<ClockPair> pairs, Drift drift) {
  std::sort(pairs.begin(), pairs.end(),
            [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  ClockFit level = fit_with(pairs, 0);
  level.drift_uncertainty_ppm = kQuartzPpm;
  const double span_s = seconds_of(pairs);
  if (drift == Drift::kNone || pairs.size() < kLeastForScatter || span_s <= 0) return level;
  ClockFit tilted = fit_with(pairs, middle_slope_ppm(pairs));
  const double spread_us = spread_ns(pairs, tilted.clock) / 1000;
  tilted.drift_uncertainty_ppm = 2 * spread_us * widening(5, pairs.size()) / span_s;
  level.drift_uncertainty_ppm = tilted.drift_uncertainty_ppm + std::abs(tilted.clock.drift_ppm);
  return std::abs(tilted.clock.drift_ppm) > tilted.drift_uncertainty_ppm ? tilted : level;
}

}  // namespace sidestream::trace
