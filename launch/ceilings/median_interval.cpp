#include "launch/ceilings/median_interval.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "profiling/statistics/batches.hpp"
#include "profiling/statistics/mean_interval.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::launch {
namespace {

// How likely exactly k of n values are below the median.
double chance_below(std::size_t k, std::size_t n) {
  const auto real = [](std::size_t number) { return static_cast<double>(number); };
  return std::exp(std::lgamma(real(n) + 1) - std::lgamma(real(k) + 1) -
                  std::lgamma(real(n - k) + 1) - real(n) * std::log(2.0));
}

// How many values at each end may be left out.
std::size_t left_out_at_each_end(std::size_t n) {
  constexpr double kOutsideOneEnd = 0.025;
  std::size_t count = 0;
  for (double outside = chance_below(0, n); outside <= kOutsideOneEnd && 2 * count < n;
       outside += chance_below(count, n))
    ++count;
  return count;
}

double median_of(std::span<const double> values) {
  return statistics::median(std::vector<double>(values.begin(), values.end()));
}

}  // namespace

std::optional<MedianInterval> median_interval(std::vector<double> values) {
  const std::size_t count = left_out_at_each_end(values.size());
  if (count == 0) return std::nullopt;
  std::sort(values.begin(), values.end());
  return MedianInterval{.median = statistics::median(values),
                        .low = values[count - 1],
                        .high = values[values.size() - count]};
}

std::optional<MedianInterval> series_median_interval(const std::vector<double>& values) {
  std::optional<MedianInterval> interval = median_interval(values);
  if (!interval || values.size() < statistics::kLeastForBatches) return interval;
  const auto batches = statistics::mean_interval(statistics::of_batches(values, median_of));
  const double half = batches->high - batches->mean;
  interval->low = std::min(interval->low, interval->median - half);
  interval->high = std::max(interval->high, interval->median + half);
  return interval;
}

}  // namespace sidestream::launch
