// Rounding up to whole units.
#pragma once

#include <concepts>
#include <type_traits>

namespace sidestream::core {

// How many units of `unit` hold `value`. value: not negative; unit: at least 1.
template <std::integral Number>
constexpr Number divided_up(Number value, std::type_identity_t<Number> unit) {
  return (value + unit - 1) / unit;
}

// The least multiple of `unit` that is not below `value`.
template <std::integral Number>
constexpr Number rounded_up(Number value, std::type_identity_t<Number> unit) {
  return divided_up(value, unit) * unit;
}

}  // namespace sidestream::core
