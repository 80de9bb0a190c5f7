// Sums of squares, scaling, rounding and finiteness over plain arrays.
//
// A sum of squares is defined over fixed blocks of kSumBlock elements, counted from the start of
// the range, whose sums are added in order: threads may compute blocks in any split and the result
// keeps its bits.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/dtype.hpp"
#include "core/base/float16.hpp"

namespace sidestream::optim {

inline constexpr std::size_t kSumBlock = 16384;

// Blocks that a range of this many elements has.
constexpr std::size_t sum_blocks(std::size_t elements) {
  return (elements + kSumBlock - 1) / kSumBlock;
}

// One sum per block of the range; squares.size() must be sum_blocks(range.size()). To split: give
// each thread a piece that starts at a multiple of kSumBlock, and its part of `squares`. Throws
// Error for another length.
void sums_of_squares(std::span<const float> range, std::span<double> squares);
void sums_of_squares(std::span<const core::BFloat16> range, std::span<double> squares);

// The block sums added in order.
double add_in_order(std::span<const double> squares);

// add_in_order(sums_of_squares(range)), without the array. NaN and infinity pass through.
double sum_of_squares(std::span<const float> range);
double sum_of_squares(std::span<const core::BFloat16> range);
double sum_of_squares(std::span<const core::Float16> range);

// range *= factor
void scale(std::span<float> range, float factor);
void scale(std::span<core::BFloat16> range, float factor);

// False when the range holds a NaN or an infinity.
bool all_finite(std::span<const float> range);
bool all_finite(std::span<const core::BFloat16> range);

// Conversions between the master weights and their low-precision copy. Throw Error when lengths
// differ.
void round_to_bfloat16(std::span<const float> from, std::span<core::BFloat16> to);
void widen_to_float(std::span<const core::BFloat16> from, std::span<float> to);

}  // namespace sidestream::optim
