// Checks that the optimizers share: lengths of ranges, and the ranges of configuration values.
#pragma once

#include <cstddef>
#include <string_view>

namespace sidestream::optim {

// Throws Error when a range of an update is not as long as the weights.
void require_length(std::string_view what, std::size_t expected, std::size_t found);

enum class End { kClosed, kOpen };

struct Interval {
  double low;
  double high;
  End high_end = End::kClosed;
};

// Throws ConfigError that names the flag when value is outside the interval or not a number.
void require_in_range(std::string_view flag, double value, const Interval& interval);

}  // namespace sidestream::optim
