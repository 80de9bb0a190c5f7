// Draws the next token from a model's logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace sidestream::launch {

struct SamplerConfig {
  double temperature = 0.8;  // 0: always the most likely token
  int top_k = 40;            // 0: all tokens
  std::uint64_t seed = 1337;
};

class Sampler {
 public:
  explicit Sampler(const SamplerConfig& config) : config_(config), random_(config.seed) {}

  // logits: one score per token of the vocabulary, at least one.
  std::int64_t pick(std::span<const float> logits);

 private:
  std::vector<std::int64_t> candidates(std::span<const float> logits) const;

  SamplerConfig config_;
  std::mt19937_64 random_;
};

}  // namespace sidestream::launch
