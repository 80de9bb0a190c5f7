#include "profiling/statistics/middle.hpp"

#include <algorithm>
#include <cmath>

#include "profiling/statistics/median.hpp"

namespace sidestream::statistics {

Middle middle_of(const std::vector<double>& values) {
  Middle middle{.median = upper_median(values), .count = values.size()};
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle.median));
  middle.deviation = upper_median(std::move(distances));
  return middle;
}

double difference_uncertainty(const Middle& one, const Middle& other) {
  constexpr double kSigmaOfDeviation = 1.4826;  // of normal scatter
  constexpr double kErrorOfMedian = 1.2533;     // of the mean's: sqrt(pi / 2)
  const auto part = [](std::size_t count) {
    return count == 0 ? 0 : 1 / static_cast<double>(count);
  };
  return 2 * kSigmaOfDeviation * kErrorOfMedian * std::max(one.deviation, other.deviation) *
         std::sqrt(part(one.count) + part(other.count));
}

}  // namespace sidestream::statistics
