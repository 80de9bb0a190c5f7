// Whether the new runs learn the same as the base: loss curves point by point, and the validation
// loss at the end.
//
// Runs come in pairs with one seed a pair, the same for both sides. So the scatter of the base runs
// says what another seed changes, and that is the tolerance: a new version may move the loss by no
// more than another seed would. With the same seed and the same arithmetic the curves are equal to
// the bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiling/verify/recorded_run.hpp"

namespace sidestream::verify {

enum class Convergence {
  kIdentical,    // every point of every pair
  kSame,         // the interval of the mean difference lies within the spread of seeds, and so do
                 // the differences of most points on the way
  kBetter,       // lower by more than the spread of seeds, shown by the interval
  kWorse,        // higher by more than it
  kNotShown,     // the pairs scatter too much to tell
  kNotMeasured,  // no two seeds, or no loss on both sides
};
const char* name_of(Convergence verdict);

// Differences are new - base. Spread: standard deviation over the seeds of the base.
struct LossDifference {
  int pairs = 0;
  double base = 0;  // means over the pairs
  double fresh = 0;
  double difference = 0;
  // Nothing of one pair: 95 % interval of the mean difference (Student's), and the spread.
  std::optional<double> low = {};
  std::optional<double> high = {};
  std::optional<double> spread = {};
  Convergence verdict = Convergence::kNotMeasured;
};

struct CurveComparison {
  std::int64_t points = 0;            // steps that all runs logged
  std::int64_t identical_points = 0;  // equal to the bit in every pair
  double largest_difference = 0;      // of the mean over the pairs
  std::int64_t largest_at_step = 0;
  std::size_t seeds = 0;     // pairs; below 2 there is no spread
  double spread_there = 0;   // of the seeds at that step
  double within_spread = 0;  // share of points whose mean difference is within it
};

struct ConvergenceResult {
  Convergence verdict = Convergence::kNotMeasured;
  std::string reason = {};  // one sentence
  // A new run does, its base does not: worse whatever else differs.
  bool ends_in_no_number = false;
  std::optional<CurveComparison> curve = {};
  // At the last step that all runs were evaluated at.
  std::optional<LossDifference> final_val_loss = {};
  // Mean of the last tenth of the steps that all runs logged.
  std::optional<LossDifference> final_loss = {};
};

struct RunPair {
  const RecordedRun* base = nullptr;
  const RecordedRun* fresh = nullptr;
};

ConvergenceResult compare_convergence(const std::vector<RunPair>& pairs);

// Figures without a judgement: nothing says how far apart they may be.
void withhold_verdict(ConvergenceResult& result, std::string reason);

struct LossPair {
  double base = 0;
  double fresh = 0;
};

// The judgement on one figure a run. Empty without pairs; of one pair the figures alone.
std::optional<LossDifference> judge_losses(const std::vector<LossPair>& losses);

}  // namespace sidestream::verify
