// Rounding to bfloat16 up or down by chance, so that nothing is lost on average: a moment goes on
// moving where its change in one step is smaller than half of its last bit.
//
// The chance is a pure function of seed, step, parameter, element and moment. It depends on no
// layout, split, thread or rank, and a resumed run draws what the whole one would have drawn.
// Processor and GPU share it.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/dtype.hpp"
#include "core/base/random_bits.hpp"
#include "core/base/vectorize.hpp"

namespace sidestream::optim {

// What all draws of one step have in common.
struct RoundingSource {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
};

// Where a range of one parameter draws in one step: a key of 64 bits, and the number of its first
// element within the parameter.
struct RoundingPlace {
  std::uint32_t key_low = 0;
  std::uint32_t key_high = 0;
  std::uint64_t first = 0;

  // Of the same range from its element `offset` on.
  SIDESTREAM_INLINE RoundingPlace from(std::uint64_t offset) const {
    return {key_low, key_high, first + offset};
  }
};

// An element draws 32 bits in a step, and each of its moments has a half of them.
enum class RoundingHalf { kFirstMoment, kSecondMoment };

// parameter: its number in registration order; first: an element of it.
SIDESTREAM_INLINE RoundingPlace rounding_place(const RoundingSource& source,
                                               std::uint64_t parameter, std::uint64_t first) {
  const std::uint64_t of_step =
      core::mix_bits(source.seed, static_cast<std::uint64_t>(source.step));
  const std::uint64_t key = core::mix_bits(of_step ^ parameter);
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), first};
}

// The finalizer of MurmurHash3 for 32 bits (Appleby), with a key between its two rounds.
SIDESTREAM_INLINE std::uint32_t finalized(std::uint32_t x, std::uint32_t key) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu + key;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

// The draw of the range's element i: its number finalized, half of the key before and half between
// the rounds. A dozen operations that every vector unit has, a counter and no state. Of the number
// that is its low half; the high one changes the second half of the key, by nothing below 2^32.
SIDESTREAM_INLINE std::uint32_t rounding_draw(const RoundingPlace& place, std::uint32_t i) {
  const auto low = static_cast<std::uint32_t>(place.first);
  const auto high = static_cast<std::uint32_t>(place.first >> 32);
  // The same for all elements, so that a loop finds both once.
  const std::uint32_t key = place.key_high + finalized(high, 0),
                      next_key = place.key_high + finalized(high + 1, 0);
  const std::uint32_t element = low + i;
  return finalized(element ^ place.key_low, element < low ? next_key : key);
}

// A number below 2^16.
SIDESTREAM_INLINE std::uint32_t half_of(std::uint32_t draw, RoundingHalf half) {
  return half == RoundingHalf::kFirstMoment ? draw >> 16 : draw & 0xFFFFu;
}

// Adds the draw below the last bit that stays and cuts the rest off: a value between two bfloat16
// becomes the larger one in magnitude with the probability of its distance from the smaller one,
// and one that bfloat16 has stays what it is. Infinity stays infinity and NaN NaN, and what is
// finite stays finite: above the largest bfloat16 there is only that one.
SIDESTREAM_INLINE core::BFloat16 round_stochastically(float value, std::uint32_t half_draw) {
  const auto wide = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t magnitude = wide & 0x7FFFFFFFu;
  // The largest finite number limits a finite sum; infinity and NaN are their own limit. Maximum,
  // minimum and a mask: a branch here keeps every loop around it from being vectorised.
  const std::uint32_t limit = magnitude > 0x7F7FFFFFu ? magnitude : 0x7F7FFFFFu;
  const std::uint32_t sum = magnitude + half_draw;
  std::uint32_t kept = (sum < limit ? sum : limit) >> 16;
  // What marks a NaN may be in the part that is cut off.
  kept |= 0x40u & (0u - static_cast<std::uint32_t>(magnitude > 0x7F800000u));
  core::BFloat16 result;
  result.bits = static_cast<std::uint16_t>(kept | ((wide >> 16) & 0x8000u));
  return result;
}

// A moment in the type in which it is kept; fp32 takes no notice of the draw.
template <typename Moment>
SIDESTREAM_INLINE Moment kept_moment(float value, std::uint32_t draw, RoundingHalf half);
template <>
SIDESTREAM_INLINE float kept_moment(float value, std::uint32_t, RoundingHalf) {
  return value;
}
template <>
SIDESTREAM_INLINE core::BFloat16 kept_moment(float value, std::uint32_t draw, RoundingHalf half) {
  return round_stochastically(value, half_of(draw, half));
}

// to[i] = from[i], rounded with the draw of element i of the place. Throws Error when lengths
// differ. Spans must not overlap.
void round_stochastically(std::span<const float> from, std::span<core::BFloat16> to,
                          const RoundingPlace& place, RoundingHalf half);

}  // namespace sidestream::optim
