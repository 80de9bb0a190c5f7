#include "core/optim/reduce.hpp"

#include <algorithm>

#include "core/base/vectorize.hpp"
#include "core/optim/block_squares.hpp"
#include "core/optim/check.hpp"

namespace sidestream::optim {
namespace {

SIDESTREAM_VECTORIZED void multiply(float* x, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

SIDESTREAM_VECTORIZED void multiply(core::BFloat16* x, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; ++i) x[i] = core::BFloat16(static_cast<float>(x[i]) * factor);
}

// An exponent of all ones is NaN or infinity. Bits, because comparisons of floats may be optimised
// away.
SIDESTREAM_VECTORIZED bool block_finite(const float* x, std::size_t n) {
  constexpr std::uint32_t kExponent = 0x7F800000u;
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) {
    bad |= (__builtin_bit_cast(std::uint32_t, x[i]) & kExponent) == kExponent ? 1u : 0u;
  }
  return bad == 0;
}

SIDESTREAM_VECTORIZED bool block_finite(const core::BFloat16* x, std::size_t n) {
  constexpr std::uint16_t kExponent = 0x7F80u;
  std::uint16_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) {
    bad = static_cast<std::uint16_t>(bad | ((x[i].bits & kExponent) == kExponent ? 1u : 0u));
  }
  return bad == 0;
}

SIDESTREAM_VECTORIZED void round_all(const float* __restrict from, core::BFloat16* __restrict to,
                                     std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = core::BFloat16(from[i]);
}

SIDESTREAM_VECTORIZED void widen_all(const core::BFloat16* __restrict from, float* __restrict to,
                                     std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

template <typename T>
std::span<const T> block_of(std::span<const T> range, std::size_t block) {
  const std::size_t first = block * kSumBlock;
  return range.subspan(first, std::min(kSumBlock, range.size() - first));
}

template <typename T>
void each_block_squares(std::span<const T> range, std::span<double> squares) {
  require_length("block sums", sum_blocks(range.size()), squares.size());
  for (std::size_t block = 0; block < squares.size(); ++block) {
    const auto part = block_of(range, block);
    squares[block] = block_squares(part.data(), part.size());
  }
}

template <typename T>
double ordered_squares(std::span<const T> range) {
  double sum = 0;
  for (std::size_t block = 0; block < sum_blocks(range.size()); ++block) {
    const auto part = block_of(range, block);
    sum += block_squares(part.data(), part.size());
  }
  return sum;
}

template <typename T>
bool every_block_finite(std::span<const T> range) {
  for (std::size_t block = 0; block < sum_blocks(range.size()); ++block) {
    const auto part = block_of(range, block);
    if (!block_finite(part.data(), part.size())) return false;
  }
  return true;
}

}  // namespace

void sums_of_squares(std::span<const float> range, std::span<double> squares) {
  each_block_squares(range, squares);
}
void sums_of_squares(std::span<const core::BFloat16> range, std::span<double> squares) {
  each_block_squares(range, squares);
}

double add_in_order(std::span<const double> squares) {
  double sum = 0;
  for (const double square : squares) sum += square;
  return sum;
}

double sum_of_squares(std::span<const float> range) { return ordered_squares(range); }
double sum_of_squares(std::span<const core::BFloat16> range) { return ordered_squares(range); }
double sum_of_squares(std::span<const core::Float16> range) { return ordered_squares(range); }

void scale(std::span<float> range, float factor) { multiply(range.data(), range.size(), factor); }
void scale(std::span<core::BFloat16> range, float factor) {
  multiply(range.data(), range.size(), factor);
}

bool all_finite(std::span<const float> range) { return every_block_finite(range); }
bool all_finite(std::span<const core::BFloat16> range) { return every_block_finite(range); }

void round_to_bfloat16(std::span<const float> from, std::span<core::BFloat16> to) {
  require_length("low-precision values", from.size(), to.size());
  round_all(from.data(), to.data(), from.size());
}

void widen_to_float(std::span<const core::BFloat16> from, std::span<float> to) {
  require_length("master weights", from.size(), to.size());
  widen_all(from.data(), to.data(), from.size());
}

}  // namespace sidestream::optim
