#include "core/data/sample_source.hpp"

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/random_bits.hpp"
#include "core/data/sample_order.hpp"

namespace sidestream::data {

void SampleSource::read_batch(std::span<const std::uint64_t> samples,
                              std::span<std::int64_t> inputs,
                              std::span<std::int64_t> targets) const {
  if (samples.empty()) return;
  const std::size_t length = inputs.size() / samples.size();
  for (std::size_t row = 0; row < samples.size(); ++row)
    read(samples[row], inputs.subspan(row * length, length), targets.subspan(row * length, length));
}

std::uint64_t StreamSource::count(std::uint64_t sequence_length) const {
  return sample_count(stream_->size(), sequence_length);
}

// Inputs and targets are the same tokens but for one at each end: they are read once.
void StreamSource::read_batch(std::span<const std::uint64_t> samples,
                              std::span<std::int64_t> inputs,
                              std::span<std::int64_t> targets) const {
  if (samples.empty()) return;
  const std::size_t length = inputs.size() / samples.size();
  std::vector<std::int64_t> tokens(length + 1);
  WholeShards whole;
  for (std::size_t row = 0; row < samples.size(); ++row) {
    stream_->read(samples[row] * length, tokens, whole);
    std::copy(tokens.begin(), tokens.end() - 1, inputs.subspan(row * length, length).begin());
    std::copy(tokens.begin() + 1, tokens.end(), targets.subspan(row * length, length).begin());
  }
}

SyntheticSource::SyntheticSource(std::uint64_t vocab_size, std::uint64_t seed)
    : vocab_size_(vocab_size), seed_(seed) {
  if (vocab_size == 0 || vocab_size > (std::uint64_t{1} << 32)) {
    throw core::ConfigError("synthetic data needs a vocabulary size from 1 to 2^32, found " +
                            std::to_string(vocab_size));
  }
}

std::uint64_t SyntheticSource::count(std::uint64_t) const { return std::uint64_t{1} << 48; }

void SyntheticSource::read(std::uint64_t sample, std::span<std::int64_t> inputs,
                           std::span<std::int64_t> targets) const {
  const std::uint64_t key = core::mix_bits(seed_, sample);
  const auto token = [&](std::uint64_t position) {
    return static_cast<std::int64_t>(((core::mix_bits(key + position) >> 32) * vocab_size_) >> 32);
  };
  for (std::size_t t = 0; t < inputs.size(); ++t) inputs[t] = token(t);
  for (std::size_t t = 0; t < targets.size(); ++t) targets[t] = token(t + 1);
}

}  // namespace sidestream::data
