// The sum of the squares of a block of numbers, in double: of fp32, bf16 and fp16, every square is
// exact there. The order of the additions is the same on every processor, and on a GPU.
#pragma once

#include <cstddef>

#include "core/base/dtype.hpp"
#include "core/base/float16.hpp"

namespace sidestream::optim {

double block_squares(const float* x, std::size_t n);
double block_squares(const core::BFloat16* x, std::size_t n);
double block_squares(const core::Float16* x, std::size_t n);

}  // namespace sidestream::optim
