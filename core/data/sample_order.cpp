#include "core/data/sample_order.hpp"

#include "core/base/random_bits.hpp"
#include "core/data/permutation.hpp"

namespace sidestream::data {

std::uint64_t SampleOrder::sample(std::uint64_t index) const {
  const std::uint64_t inside = index % samples;
  if (shuffle == Shuffle::kOff) return inside;
  return Permutation(samples, core::mix_bits(seed, epoch(index)))(inside);
}

std::uint64_t sample_count(std::uint64_t tokens, std::uint64_t sequence_length) {
  return tokens == 0 ? 0 : (tokens - 1) / sequence_length;
}

}  // namespace sidestream::data
