#include "core/data/sample_source.hpp"

#include "core/base/error.hpp"
#include "core/base/random_bits.hpp"
#include "core/data/sample_order.hpp"

namespace sidestream::data {

std::uint64_t StreamSource::count(std::uint64_t sequence_length) const {
  return sample_count(stream_->size(), sequence_length);
}

void StreamSource::read(std::uint64_t sample, std::span<std::int64_t> inputs,
                        std::span<std::int64_t> targets) const {
  const std::uint64_t first = sample * inputs.size();
  stream_->read(first, inputs);
  stream_->read(first + 1, targets);
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
