#include "profiling/verify/paired_ratio.hpp"

#include <fmt/format.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "core/base/error.hpp"

namespace sidestream::verify {
namespace {

namespace bm = boost::math;

// Scatter below this is rounding of clocks: it would make every difference certain.
constexpr double kSmallestLogSd = 1e-9;

double log_ratio(const Pair& pair) {
  const bool usable =
      pair.base > 0 && pair.fresh > 0 && std::isfinite(pair.base) && std::isfinite(pair.fresh);
  if (!usable)
    throw core::Error(fmt::format("expected step times above 0 of both sides, found {} and {}",
                                  pair.base, pair.fresh));
  return std::log(pair.fresh / pair.base);
}

double critical_t(int pairs) {
  return bm::quantile(bm::students_t(pairs - 1), (1 + kConfidence) / 2);
}

// The upper limit of the scatter that so few pairs are consistent with.
double cautious_log_sd(const RatioEstimate& pilot) {
  constexpr double kOneSided = 0.9;
  const double freedom = pilot.pairs - 1;
  const double quantile = bm::quantile(bm::chi_squared(freedom), 1 - kOneSided);
  return pilot.log_sd * std::sqrt(freedom / quantile);
}

}  // namespace

std::optional<RatioEstimate> estimate_ratio(std::span<const Pair> pairs) {
  std::vector<double> logs;
  double sum = 0;
  for (const Pair& pair : pairs) sum += logs.emplace_back(log_ratio(pair));
  if (logs.size() < 2) return std::nullopt;
  const double count = static_cast<double>(logs.size());
  const double mean = sum / count;
  double squares = 0;
  for (const double one : logs) squares += (one - mean) * (one - mean);
  const double sd = std::sqrt(squares / (count - 1));
  const double half = critical_t(static_cast<int>(logs.size())) * sd / std::sqrt(count);
  return RatioEstimate{.pairs = static_cast<int>(logs.size()),
                       .ratio = std::exp(mean),
                       .low = std::exp(mean - half),
                       .high = std::exp(mean + half),
                       .log_sd = sd};
}

std::optional<DifferenceInterval> difference_interval(std::span<const Pair> pairs) {
  if (pairs.size() < 2) return std::nullopt;
  const double count = static_cast<double>(pairs.size());
  double mean = 0, squares = 0;
  for (const Pair& one : pairs) mean += (one.fresh - one.base) / count;
  for (const Pair& one : pairs) squares += std::pow(one.fresh - one.base - mean, 2);
  const double half =
      critical_t(static_cast<int>(pairs.size())) * std::sqrt(squares / (count - 1) / count);
  return DifferenceInterval{mean - half, mean + half};
}

Verdict verdict_of(const RatioEstimate& estimate) {
  if (estimate.high < 1) return Verdict::kFaster;
  if (estimate.low > 1) return Verdict::kSlower;
  return Verdict::kNoDifferenceShown;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kNoDifferenceShown:
      break;
  }
  return "no difference shown";
}

double power_of(double log_sd, int pairs, double effect) {
  if (pairs < 2) return 0;
  const double sd = std::max(log_sd, kSmallestLogSd);
  const double shift = std::log1p(effect) * std::sqrt(static_cast<double>(pairs)) / sd;
  constexpr double kCertain = 37;  // beyond it the distribution's series do not converge
  if (shift > kCertain + critical_t(pairs)) return 1;
  const bm::non_central_t distribution(pairs - 1, shift);
  return bm::cdf(bm::complement(distribution, critical_t(pairs)));
}

double smallest_effect(const RatioEstimate& estimate) {
  double low = 0, high = 1e-6;
  while (power_of(estimate.log_sd, estimate.pairs, high) < kPower) high *= 2;
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (power_of(estimate.log_sd, estimate.pairs, middle) < kPower ? low : high) = middle;
  }
  return high;
}

std::optional<int> pairs_needed(const RatioEstimate& pilot, double effect, int limit) {
  const double sd = cautious_log_sd(pilot);
  if (power_of(sd, limit, effect) < kPower) return std::nullopt;
  int low = 1, high = limit;  // power rises with the number of pairs
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (power_of(sd, middle, effect) < kPower ? low : high) = middle;
  }
  return high;
}

}  // namespace sidestream::verify
