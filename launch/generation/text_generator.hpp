// Text from a language model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "launch/generation/sampler.hpp"
#include "model/language_model.hpp"

namespace sidestream::launch {

struct GenerationLimits {
  std::int64_t tokens = 1;
  // Of the tokenizer: the model's may have rows that nobody has trained.
  std::int64_t vocab_size = 0;
};

// Appends limits.tokens tokens to `tokens` (at least one token), each predicted from as many of the
// last ones as the model's context holds, and hands each to `on_token`. Stops early when on_token
// returns false.
void generate_tokens(model::LanguageModel& model, Sampler& sampler,
                     std::vector<std::int64_t>& tokens, const GenerationLimits& limits,
                     const std::function<bool(std::int64_t)>& on_token);

}  // namespace sidestream::launch
