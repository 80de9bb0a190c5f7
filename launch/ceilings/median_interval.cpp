#include "launch/ceilings/median_interval.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

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

// The oldest values that fill no batch are in none.
std::vector<double> batch_medians(const std::vector<double>& values) {
  const auto batches = static_cast<std::size_t>(std::sqrt(static_cast<double>(values.size())));
  const std::size_t size = values.size() / batches;
  std::vector<double> medians;
  for (auto at = values.end() - static_cast<std::ptrdiff_t>(batches * size); at != values.end();
       at += static_cast<std::ptrdiff_t>(size))
    medians.push_back(
        statistics::median(std::vector<double>(at, at + static_cast<std::ptrdiff_t>(size))));
  return medians;
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
  constexpr std::size_t kLeastForBatches = 16;  // four of four
  std::optional<MedianInterval> interval = median_interval(values);
  if (!interval || values.size() < kLeastForBatches) return interval;
  const auto of_batches = statistics::mean_interval(batch_medians(values));
  const double half = of_batches->high - of_batches->mean;
  interval->low = std::min(interval->low, interval->median - half);
  interval->high = std::max(interval->high, interval->median + half);
  return interval;
}

}  // namespace sidestream::launch
