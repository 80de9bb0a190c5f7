#include "core/optim/check.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace sidestream::optim {

void require_length(std::string_view what, std::size_t expected, std::size_t found) {
  if (expected == found) return;
  throw core::Error(fmt::format("optimizer update: expected {} {}, one for each weight, found {}",
                                expected, what, found));
}

void require_in_range(std::string_view flag, double value, const Interval& interval) {
  const bool below_high =
      interval.high_end == End::kOpen ? value < interval.high : value <= interval.high;
  if (value >= interval.low && below_high) return;  // false for NaN
  throw core::ConfigError(fmt::format("{}: expected a number in [{}, {}{}, found {}", flag,
                                      interval.low, interval.high,
                                      interval.high_end == End::kOpen ? ")" : "]", value));
}

}  // namespace sidestream::optim
