#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sidestream::statistics {

// The middle value, the upper of two; T{} of none. Always one of the values, never between two.
template <typename T>
T upper_median(std::vector<T> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Half-way between the middle two of an even number of values; 0 of none.
template <typename T>
double median(std::vector<T> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const auto upper = static_cast<double>(*middle);
  if (values.size() % 2 == 1) return upper;
  return (upper + static_cast<double>(*std::max_element(values.begin(), middle))) / 2;
}

// The value below which this share of them lie; T{} of none. Always one of the values.
template <typename T>
T quantile(std::vector<T> values, double share) {
  if (values.empty()) return {};
  const auto place =
      static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

}  // namespace sidestream::statistics
