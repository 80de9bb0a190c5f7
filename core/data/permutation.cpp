#include "core/data/permutation.hpp"

#include <bit>
#include <cassert>

#include "core/base/error.hpp"
#include "core/base/random_bits.hpp"

namespace sidestream::data {
namespace {

constexpr std::uint64_t kRounds = 8;

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key)
    : size_(size), key_(core::mix_bits(key)) {
  if (size == 0) throw core::Error("a permutation of nothing");
  const unsigned bits = static_cast<unsigned>(std::bit_width(size - 1));
  half_bits_ = bits < 2 ? 1 : (bits + 1) / 2;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & half_mask_;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t mixed = core::mix_bits(key_ + round, right) & half_mask_;
    const std::uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  assert(index < size_);
  do {
    index = encrypt(index);
  } while (index >= size_);
  return index;
}

}  // namespace sidestream::data
