#include "profiling/statistics/mean_interval.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "profiling/statistics/batches.hpp"

namespace sidestream::statistics {
namespace {

constexpr double kOutside = 0.05;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

std::optional<Interval> mean_interval(std::span<const double> values, std::size_t choices,
                                      std::size_t least) {
  if (values.size() < std::max<std::size_t>(least, 2)) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  const double outside = kOutside / static_cast<double>(choices);
  const double half =
      boost::math::quantile(boost::math::students_t(count - 1), 1 - outside / 2) * error;
  return Interval{.mean = mean, .low = mean - half, .high = mean + half};
}

std::optional<Interval> series_interval(std::span<const double> values, std::size_t choices,
                                        std::size_t least) {
  std::optional<Interval> interval = mean_interval(values, choices, least);
  if (!interval || values.size() < kLeastForBatches) return interval;
  const auto batches = mean_interval(of_batches(values, mean_of), choices);
  const double half = std::max(interval->high - interval->mean, batches->high - batches->mean);
  interval->low = interval->mean - half;
  interval->high = interval->mean + half;
  return interval;
}

}  // namespace sidestream::statistics
