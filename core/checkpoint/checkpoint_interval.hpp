// How often to save, and what failures cost: Young, "A first order approximation to the optimum
// checkpoint interval", CACM 17 (1974).
#pragma once

#include <cmath>

namespace sidestream::checkpoint {

// Seconds of training between saves that lose least: sqrt(2 C M), for a save that holds training up
// for `stall_s` and one failure every `mtbf_s`.
inline double young_interval_s(double stall_s, double mtbf_s) {
  return std::sqrt(2 * stall_s * mtbf_s);
}

// The same, but never shorter than a save takes until it has its name: the next one could not
// begin.
inline double advised_interval_s(double stall_s, double save_s, double mtbf_s) {
  return std::fmax(young_interval_s(stall_s, mtbf_s), save_s);
}

// What failures and saves cost, all in seconds.
struct FailureCosts {
  double interval_s = 0;  // of training between saves
  double stall_s = 0;     // of a save
  double detect_s = 0;    // from a failure to the end of the ranks
  double restart_s = 0;   // from there to the first step: starting and restoring
  double mtbf_s = 0;      // mean time between failures
};

// The share of wall time that is effective training: stalls between failures, and for each failure
// half an interval that is trained again, its detection and the restart.
//   ETTR = (1 - stall / (interval + stall)) (1 - (interval / 2 + detect + restart) / mtbf)
inline double expected_ettr(const FailureCosts& costs) {
  const double saving =
      costs.interval_s > 0 ? costs.stall_s / (costs.interval_s + costs.stall_s) : 0;
  const double failing = (costs.interval_s / 2 + costs.detect_s + costs.restart_s) / costs.mtbf_s;
  return std::fmax(0, (1 - saving) * (1 - failing));
}

}  // namespace sidestream::checkpoint
