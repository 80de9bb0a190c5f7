#include "core/data/sample_order.hpp"

#include <algorithm>

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

std::uint64_t taken_with_another_length(std::uint64_t taken, const SampleCut& from,
                                        const SampleCut& to) {
  if (from.samples == 0) return taken;  // too few tokens by now for one: they are others
  const std::uint64_t tokens = taken % from.samples * from.sequence_length;
  const std::uint64_t begun = tokens / to.sequence_length + (tokens % to.sequence_length > 0);
  return taken / from.samples * to.samples + std::min(begun, to.samples);
}

}  // namespace sidestream::data
