#include "launch/generation/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"

namespace sidestream::launch {

std::vector<std::int64_t> Sampler::candidates(std::span<const float> logits) const {
  std::vector<std::int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const std::size_t keep =
      config_.top_k > 0 ? std::min<std::size_t>(config_.top_k, tokens.size()) : tokens.size();
  // Ties go to the lower token, so that a run can be repeated anywhere.
  const auto better = [&](std::int64_t a, std::int64_t b) {
    const float left = logits[static_cast<std::size_t>(a)],
                right = logits[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(keep),
                    tokens.end(), better);
  tokens.resize(keep);
  return tokens;
}

std::int64_t Sampler::pick(std::span<const float> logits) {
  // Minus infinity is a token that is never drawn.
  const auto is_no_score = [](float logit) {
    return std::isnan(logit) || logit == std::numeric_limits<float>::infinity();
  };
  if (std::any_of(logits.begin(), logits.end(), is_no_score)) {
    throw core::NumericsError(
        "the model's output is not a finite number: generate from another checkpoint");
  }
  const std::vector<std::int64_t> tokens = candidates(logits);
  if (config_.temperature <= 0) return tokens.front();
  const double highest = logits[static_cast<std::size_t>(tokens.front())];
  std::vector<double> weights;
  weights.reserve(tokens.size());
  for (const std::int64_t token : tokens) {
    weights.push_back(
        std::exp((logits[static_cast<std::size_t>(token)] - highest) / config_.temperature));
  }
  // Not std::discrete_distribution: its draws differ between standard libraries.
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double target = static_cast<double>(random_() >> 11) * 0x1.0p-53 * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    target -= weights[i];
    if (target < 0) return tokens[i];
  }
  return tokens.back();
}

}  // namespace sidestream::launch
