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
