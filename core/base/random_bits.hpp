// A counter turned into bits: no state, the same on every machine, processor or GPU.
#pragma once

#include <cstdint>

#include "core/base/vectorize.hpp"

namespace sidestream::core {

// One output of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014) at this state: a bijection whose every output bit depends on every input bit.
SIDESTREAM_INLINE constexpr std::uint64_t mix_bits(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

SIDESTREAM_INLINE constexpr std::uint64_t mix_bits(std::uint64_t first, std::uint64_t second) {
  return mix_bits(mix_bits(first) ^ second);
}

}  // namespace sidestream::core
