#include "profiling/statistics/mean_interval.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace sidestream::statistics {
namespace {

constexpr std::size_t kLeastForScatter = 2;
constexpr double kOutside = 0.05;

}  // namespace

std::optional<Interval> mean_interval(std::span<const double> values, std::size_t choices) {
  if (values.size() < kLeastForScatter) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  const double outside = kOutside / static_cast<double>(choices);
  const double half =
      boost::math::quantile(boost::math::students_t(count - 1), 1 - outside / 2) * error;
  return Interval{.mean = mean, .low = mean - half, .high = mean + half};
}

}  // namespace sidestream::statistics
