// One clock for all ranks: what is added to a rank's time, and how sure that is.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>

namespace sidestream::trace {

// common time = t + offset_ns + drift_ppm * (t - origin_ns)
// / 1e6, where t is the rank's time with base_ns added
struct RankClock {
  std::int64_t offset_ns = 0;
  double drift_ppm = 0;
  std::int64_t origin_ns = 0;

  std::int64_t to_common(std::int64_t time_ns) const {
    const double drift_ns = drift_ppm * 1e-6 * static_cast<double>(time_ns - origin_ns);
    return time_ns + offset_ns + std::llround(drift_ns);
  }
};

struct ClockModel {
  // "none": one rank, or nothing to go by. "samples": clock.json. "collectives": matched
  // collectives alone. "samples+collectives": samples, refined. "same host": one clock by
  // construction.
  std::string method = "none";
  std::map<int, RankClock> ranks;  // a rank that is missing here keeps its own time
  double residual_us_p50 = 0;      // distance of matched collective ends after alignment
  double residual_us_p95 = 0;
  bool has_residual = false;
  // Of a rank's offset at its origin_ns, and of its drift: clock_fit.hpp says how.
  std::map<int, double> uncertainty_us = {};
  std::map<int, double> drift_uncertainty_ppm = {};

  RankClock of(int rank) const {
    const auto found = ranks.find(rank);
    return found == ranks.end() ? RankClock{} : found->second;
  }
};

}  // namespace sidestream::trace
