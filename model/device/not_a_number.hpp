// What a result is that nobody can compute, where nobody waits to be told.
#pragma once

#include <limits>

namespace sidestream::model::device {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

}  // namespace sidestream::model::device
