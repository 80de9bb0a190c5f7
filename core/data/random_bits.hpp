// A counter turned into bits: no state, the same on every machine.
#pragma once

#include <cstdint>

namespace sidestream::data {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection whose every output bit depends
// on every input bit.
constexpr std::uint64_t mix_bits(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

constexpr std::uint64_t mix_bits(std::uint64_t first, std::uint64_t second) {
  return mix_bits(mix_bits(first) ^ second);
}

}  // namespace sidestream::data
