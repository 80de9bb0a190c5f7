// How often to save: Young, "A first order approximation to the optimum
// checkpoint interval", CACM 17 (1974).
#pragma once

#include <cmath>

namespace sidestream::checkpoint {

// Seconds of training between saves that lose least: sqrt(2 C M), for a save that holds training up
// for `stall_s` and one failure every `mtbf_s`.
inline double young_interval_s(double stall_s, double mtbf_s) {
  return std::sqrt(2 * stall_s * mtbf_s);
}

// The same, but never shorter than a save takes until the next one can begin.
inline double advised_interval_s(double stall_s, double save_s, double mtbf_s) {
  return std::fmax(young_interval_s(stall_s, mtbf_s), save_s);
}

}  // namespace sidestream::checkpoint
