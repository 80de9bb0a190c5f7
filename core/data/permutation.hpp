// A permutation of 0 .. size - 1 that needs no table: a Feistel network over the next power of
// four, walked along its cycle until it is back below `size` (Black and Rogaway, "Ciphers with
// Arbitrary Finite Domains", 2002). At most four times `size` values exist, so a look-up costs
// fewer than four rounds of the network on average.
#pragma once

#include <cstdint>

namespace sidestream::data {

class Permutation {
 public:
  // The same (size, key) give the same permutation on every machine. Throws Error for size 0.
  Permutation(std::uint64_t size, std::uint64_t key);

  // index < size. A bijection.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t key_;
  unsigned half_bits_ = 1;
  std::uint64_t half_mask_ = 1;
};

}  // namespace sidestream::data
