// Which targets a loss leaves out. No LibTorch in this header.
#pragma once

#include <cstdint>

namespace sidestream::model {

// As at::cross_entropy_loss has it by default: the loss of such a target is zero, its gradient too,
// and the mean is over the others. Where none counts the loss is NaN.
inline constexpr std::int64_t kIgnoredTarget = -100;

}  // namespace sidestream::model
