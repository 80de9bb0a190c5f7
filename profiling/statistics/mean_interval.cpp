#include "profiling/statistics/mean_interval.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace sidestream::statistics {
namespace {

constexpr double kOutside = 0.05;

}  // namespace

std::optional<Interval> mean_interval(std::span<const double> values, std::size_t choices,
                                      std::size_t least) {
  if (values.size() < std::max<std::size_t>(least, 2)) return std::nullopt;
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
