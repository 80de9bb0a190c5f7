// How many times longer the new run takes than the base, from runs that were made in pairs: an
// interval, a verdict, and what so many pairs could have shown at all.
//
// Each pair is one block on the same machine, so what the machine did in that block is in both. The
// interval is Student's on the logarithms of the ratios: exact for few pairs when they scatter
// normally, wider than needed when a few of them are far out. Powers come from the noncentral t
// distribution.
#pragma once

#include <optional>
#include <span>

namespace sidestream::verify {

// One block: a positive figure of each side, lower is better (milliseconds of a step).
struct Pair {
  double base = 0;
  double fresh = 0;
};

inline constexpr double kConfidence = 0.95;  // of intervals
inline constexpr double kPower = 0.8;        // share of verifications that find a true effect

struct RatioEstimate {
  int pairs = 0;
  double ratio = 1;  // new over base: geometric mean of the pairs
  double low = 1;    // interval of the ratio
  double high = 1;
  double log_sd = 0;  // standard deviation of the logarithms
};

// Nothing for fewer than two pairs: one has no scatter. Throws core::Error for a figure that is not
// positive and finite.
std::optional<RatioEstimate> estimate_ratio(std::span<const Pair> pairs);

// The 95 % interval of the mean of fresh - base (Student's); empty for fewer than two pairs.
struct DifferenceInterval {
  double low = 0;
  double high = 0;
};
std::optional<DifferenceInterval> difference_interval(std::span<const Pair> pairs);

enum class Verdict { kFaster, kSlower, kNoDifferenceShown };

// By the interval: on one side of 1, or not.
Verdict verdict_of(const RatioEstimate& estimate);
const char* name_of(Verdict verdict);

// Chance that `pairs` pairs with this scatter show a change of `effect` (0.03: the ratio is 1.03 or
// 1 / 1.03).
double power_of(double log_sd, int pairs, double effect);

// The smallest change that as many pairs with this scatter show in kPower of all cases.
double smallest_effect(const RatioEstimate& estimate);

// Pairs to ask for so that a change of `effect` is shown in kPower of all cases. Few pairs know
// their own scatter badly: the upper limit of a one-sided 90 % interval of it is what is planned
// with. Nothing when more than `limit` would be needed.
std::optional<int> pairs_needed(const RatioEstimate& pilot, double effect, int limit = 1000);

}  // namespace sidestream::verify
