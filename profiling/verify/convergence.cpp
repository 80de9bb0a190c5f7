#include "profiling/verify/convergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <set>

namespace sidestream::verify {
namespace {

// Losses are printed and kept as doubles of fp32 sums: differences below this are rounding.
constexpr double kRounding = 1e-6;

// Of the points of a curve that is the same: below half of them it is another one, wherever it
// ends. The spread of a few seeds is too small at some steps by chance.
constexpr double kLeastWithinSpread = 0.5;

struct Moments {
  double mean = 0;
  double sd = 0;
};

Moments moments_of(const std::vector<double>& values) {
  Moments result;
  for (const double value : values) result.mean += value;
  result.mean /= static_cast<double>(values.size());
  for (const double value : values) result.sd += (value - result.mean) * (value - result.mean);
  result.sd = values.size() < 2 ? 0 : std::sqrt(result.sd / static_cast<double>(values.size() - 1));
  return result;
}

Convergence judge(const LossDifference& one) {
  if (!one.low || !one.high || !one.spread) return Convergence::kNotMeasured;
  const double margin = *one.spread + kRounding;
  if (one.low >= -margin && one.high <= margin) return Convergence::kSame;
  if (one.low > 0 && one.difference > margin) return Convergence::kWorse;
  if (one.high < 0 && one.difference < -margin) return Convergence::kBetter;
  return Convergence::kNotShown;
}

std::optional<double> last_val_loss(const RecordedRun& run) {
  for (auto step = run.steps.rbegin(); step != run.steps.rend(); ++step) {
    if (step->val_loss) return std::isfinite(*step->val_loss) ? step->val_loss : std::nullopt;
  }
  return std::nullopt;
}

bool is_evaluated(const RecordedRun& run) {
  return std::any_of(run.steps.begin(), run.steps.end(),
                     [](const RecordedStep& step) { return step.val_loss.has_value(); });
}

std::optional<double> last_loss(const RecordedRun& run) {
  return run.steps.empty() || !std::isfinite(run.steps.back().loss)
             ? std::nullopt
             : std::optional(run.steps.back().loss);
}

bool ends_in_no_number(const std::vector<RunPair>& pairs) {
  return std::any_of(pairs.begin(), pairs.end(), [](const RunPair& pair) {
    const bool in_training = last_loss(*pair.base) && !last_loss(*pair.fresh);
    const bool in_validation =
        last_val_loss(*pair.base) && is_evaluated(*pair.fresh) && !last_val_loss(*pair.fresh);
    return in_training || in_validation;
  });
}

std::map<std::int64_t, double> evaluations_of(const RecordedRun& run) {
  std::map<std::int64_t, double> losses;
  for (const RecordedStep& step : run.steps) {
    if (step.val_loss && std::isfinite(*step.val_loss)) losses[step.step] = *step.val_loss;
  }
  return losses;
}

// Of the last step that all runs were evaluated at: a loss falls with the steps. Empty: there is
// none.
std::optional<LossDifference> judge_validation(const std::vector<RunPair>& pairs) {
  std::map<std::int64_t, std::vector<LossPair>> by_step;
  for (const auto& [base, fresh] : pairs) {
    const auto right = evaluations_of(*fresh);
    for (const auto& [step, loss] : evaluations_of(*base)) {
      const auto found = right.find(step);
      if (found != right.end()) by_step[step].push_back({loss, found->second});
    }
  }
  for (auto one = by_step.rbegin(); one != by_step.rend(); ++one) {
    if (one->second.size() == pairs.size()) return judge_losses(one->second);
  }
  return std::nullopt;
}

// step -> loss of base and new, one entry a pair
using Curve = std::map<std::int64_t, std::vector<LossPair>>;

Curve joined(const std::vector<RunPair>& pairs) {
  Curve curve;
  for (const auto& [base, fresh] : pairs) {
    std::map<std::int64_t, double> left;
    for (const RecordedStep& step : base->steps) left[step.step] = step.loss;
    for (const RecordedStep& step : fresh->steps) {
      const auto found = left.find(step.step);
      if (found != left.end()) curve[step.step].push_back({found->second, step.loss});
    }
  }
  std::erase_if(curve, [&](const auto& entry) { return entry.second.size() != pairs.size(); });
  return curve;
}

// Means over the last tenth of the steps that all runs logged.
std::optional<LossDifference> judge_training(const Curve& curve) {
  const std::size_t tail = std::max<std::size_t>(1, curve.size() / 10);
  std::vector<LossPair> sums;
  auto point = curve.rbegin();
  for (std::size_t i = 0; i < tail && point != curve.rend(); ++i, ++point) {
    sums.resize(point->second.size());
    for (std::size_t pair = 0; pair < sums.size(); ++pair) {
      sums[pair].base += point->second[pair].base / static_cast<double>(tail);
      sums[pair].fresh += point->second[pair].fresh / static_cast<double>(tail);
    }
  }
  const bool finite = std::all_of(sums.begin(), sums.end(), [](const LossPair& one) {
    return std::isfinite(one.base) && std::isfinite(one.fresh);
  });
  return finite ? judge_losses(sums) : std::nullopt;
}

std::optional<CurveComparison> compare_curves(const Curve& curve) {
  CurveComparison result;
  std::int64_t within = 0;
  for (const auto& [step, losses] : curve) {
    std::vector<double> base, difference;
    for (const auto& [left, right] : losses) {
      base.push_back(left);
      difference.push_back(right - left);
    }
    const double spread = moments_of(base).sd;
    // A loss that is no number on one side is infinitely far.
    double mean = moments_of(difference).mean;
    if (!std::isfinite(mean)) mean = std::numeric_limits<double>::infinity();
    result.points += 1;
    result.seeds = std::max(result.seeds, losses.size());
    result.identical_points += std::all_of(
        losses.begin(), losses.end(), [](const LossPair& pair) { return pair.base == pair.fresh; });
    within += std::abs(mean) <= spread + kRounding;
    if (std::abs(mean) < std::abs(result.largest_difference)) continue;
    result.largest_difference = mean;
    result.largest_at_step = step;
    result.spread_there = spread;
  }
  if (result.points == 0) return std::nullopt;
  result.within_spread = static_cast<double>(within) / static_cast<double>(result.points);
  return result;
}

// What the base was seeded with; runs that do not say share one.
std::set<std::string> seeds_of(const std::vector<RunPair>& pairs) {
  std::set<std::string> seeds;
  for (const RunPair& pair : pairs) {
    const auto found = pair.base->config.find("seed");
    seeds.insert(found == pair.base->config.end() ? "" : found->second);
  }
  return seeds;
}

std::string reason_of(Convergence verdict, const LossDifference& one, const char* figure) {
  if (!one.low || !one.high || !one.spread)
    return "one pair has no spread of seeds: two or more are needed";
  const std::string numbers =
      fmt::format("{} {:+.2g} (95 % interval {:+.2g} to {:+.2g}), spread of {} seeds {:.2g}",
                  figure, one.difference, *one.low, *one.high, one.pairs, *one.spread);
  switch (verdict) {
    case Convergence::kSame:
      return numbers + ": no more than another seed changes";
    case Convergence::kWorse:
      return numbers + ": higher than another seed explains";
    case Convergence::kBetter:
      return numbers + ": lower than another seed explains";
    default:
      return numbers + ": more blocks or more steps are needed";
  }
}

}  // namespace

const char* name_of(Convergence verdict) {
  switch (verdict) {
    case Convergence::kIdentical:
      return "identical";
    case Convergence::kSame:
      return "same within the spread of seeds";
    case Convergence::kBetter:
      return "better";
    case Convergence::kWorse:
      return "worse";
    case Convergence::kNotShown:
      return "not shown";
    case Convergence::kNotMeasured:
      break;
  }
  return "not measured";
}

std::optional<LossDifference> judge_losses(const std::vector<LossPair>& losses) {
  if (losses.empty()) return std::nullopt;
  std::vector<double> base, fresh, difference;
  for (const auto& [left, right] : losses) {
    base.push_back(left);
    fresh.push_back(right);
    difference.push_back(right - left);
  }
  const Moments moments = moments_of(difference);
  LossDifference result{.pairs = static_cast<int>(losses.size()),
                        .base = moments_of(base).mean,
                        .fresh = moments_of(fresh).mean,
                        .difference = moments.mean};
  if (losses.size() < 2) return result;
  const double count = static_cast<double>(losses.size());
  const double half = boost::math::quantile(boost::math::students_t(count - 1), 0.975) *
                      moments.sd / std::sqrt(count);
  result.low = moments.mean - half;
  result.high = moments.mean + half;
  result.spread = moments_of(base).sd;
  result.verdict = judge(result);
  return result;
}

void withhold_verdict(ConvergenceResult& result, std::string reason) {
  for (auto* figure : {&result.final_val_loss, &result.final_loss}) {
    if (*figure) (*figure)->verdict = Convergence::kNotMeasured;
  }
  result.verdict = Convergence::kNotMeasured;
  result.reason = std::move(reason);
}

ConvergenceResult compare_convergence(const std::vector<RunPair>& pairs) {
  const Curve curve = joined(pairs);
  ConvergenceResult result{.curve = compare_curves(curve)};
  if (!result.curve) {
    result.reason = "the runs have no step in common";
    return result;
  }
  result.final_val_loss = judge_validation(pairs);
  result.final_loss = judge_training(curve);
  if (ends_in_no_number(pairs)) {
    result.ends_in_no_number = true;
    result.verdict = Convergence::kWorse;
    result.reason = "a new run ends with a loss that is no finite number; its base does not";
    return result;
  }
  const bool curves_identical = result.curve->identical_points == result.curve->points;
  const auto& val = result.final_val_loss;
  const bool ends_identical =
      !val || (val->difference == 0 && val->low.value_or(0) == 0 && val->high.value_or(0) == 0);
  if (curves_identical && ends_identical) {
    result.verdict = Convergence::kIdentical;
    result.reason = fmt::format("all {} points of {} pair(s) are equal to the bit",
                                result.curve->points, pairs.size());
    return result;
  }
  const auto& decisive = val ? val : result.final_loss;
  if (!decisive) {
    result.reason = "no finite loss at the end of a run";
    return result;
  }
  const std::set<std::string> seeds = seeds_of(pairs);
  if (pairs.size() > 1 && seeds.size() < 2) {
    // Runs of one seed do not scatter as seeds do: nothing can be held against their spread.
    withhold_verdict(result, fmt::format("all blocks have seed {}: the tolerance is the spread of "
                                         "seeds, which takes two or more",
                                         seeds.begin()->empty() ? "(not said)" : *seeds.begin()));
    return result;
  }
  result.verdict = decisive->verdict;
  result.reason =
      reason_of(result.verdict, *decisive, val ? "final validation loss" : "final training loss");
  if (result.verdict == Convergence::kSame && result.curve->within_spread < kLeastWithinSpread) {
    result.verdict = Convergence::kNotShown;
    result.reason += fmt::format("; but only {:.0f} % of the {} points on the way are within it",
                                 result.curve->within_spread * 100, result.curve->points);
  }
  return result;
}

}  // namespace sidestream::verify
