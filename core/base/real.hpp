// Whole numbers that a calculation goes on with in floating point.
#pragma once

#include <cstdint>

namespace sidestream::core {

// Exact up to 2^53.
constexpr double real(std::int64_t value) noexcept { return static_cast<double>(value); }

}  // namespace sidestream::core
