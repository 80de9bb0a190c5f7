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

}  // namespace sidestream::statistics
