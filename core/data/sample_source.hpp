// Where samples come from: shards, or arithmetic when data is to be taken out of the picture.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/data/token_stream.hpp"

namespace sidestream::data {

// Thread-safe: workers read different samples at the same time.
class SampleSource {
 public:
  SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  virtual ~SampleSource() = default;

  // How many samples of T + 1 tokens there are.
  virtual std::uint64_t count(std::uint64_t sequence_length) const = 0;

  // inputs[t] is token t of the sample and targets[t] token t + 1; both spans have length T.
  virtual void read(std::uint64_t sample, std::span<std::int64_t> inputs,
                    std::span<std::int64_t> targets) const = 0;

  // The same for the samples of a batch, whose spans follow one another.
  virtual void read_batch(std::span<const std::uint64_t> samples, std::span<std::int64_t> inputs,
                          std::span<std::int64_t> targets) const;
};

class StreamSource final : public SampleSource {
 public:
  explicit StreamSource(std::shared_ptr<const TokenStream> stream) : stream_(std::move(stream)) {}

  std::uint64_t count(std::uint64_t sequence_length) const override;
  void read(std::uint64_t sample, std::span<std::int64_t> inputs,
            std::span<std::int64_t> targets) const override {
    read_batch({&sample, 1}, inputs, targets);
  }
  void read_batch(std::span<const std::uint64_t> samples, std::span<std::int64_t> inputs,
                  std::span<std::int64_t> targets) const override;

 private:
  std::shared_ptr<const TokenStream> stream_;
};

// Token t of sample i is a pure function of (seed, i, t), uniform below the vocabulary size;
// practically endless.
class SyntheticSource final : public SampleSource {
 public:
  // Throws ConfigError for a vocabulary of 0 or beyond 2^32.
  SyntheticSource(std::uint64_t vocab_size, std::uint64_t seed);

  std::uint64_t count(std::uint64_t sequence_length) const override;
  void read(std::uint64_t sample, std::span<std::int64_t> inputs,
            std::span<std::int64_t> targets) const override;

 private:
  std::uint64_t vocab_size_;
  std::uint64_t seed_;
};

}  // namespace sidestream::data
