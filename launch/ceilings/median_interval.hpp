// The median of repeated measurements, and between which of them it lies.
#pragma once

#include <optional>
#include <vector>

namespace sidestream::launch {

struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
};

// The interval holds the median in 95 of 100 cases at least, by order statistics: values lie on
// either side of it as coins fall, whatever their distribution. Nothing of fewer than six values,
// which cannot be so sure.
std::optional<MedianInterval> median_interval(std::vector<double> values);

// The same of values in the order of time, where neighbours resemble each other, as steps do: coins
// that fall as the one before are fewer coins. From sixteen values on it is never narrower than
// Student's interval of the medians of about as many batches as a batch has values, as
// statistics::series_interval has it of means.
std::optional<MedianInterval> series_median_interval(const std::vector<double>& values);

}  // namespace sidestream::launch
