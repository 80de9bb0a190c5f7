#include "launch/generation/text_generator.hpp"

#include <algorithm>

namespace sidestream::launch {

void generate_tokens(model::LanguageModel& model, Sampler& sampler,
                     std::vector<std::int64_t>& tokens, const GenerationLimits& limits,
                     const std::function<bool(std::int64_t)>& on_token) {
  const torch::NoGradGuard no_grad;
  model.eval();
  for (std::int64_t made = 0; made < limits.tokens; ++made) {
    const auto context = std::min<std::int64_t>(static_cast<std::int64_t>(tokens.size()),
                                                model.config().context_length);
    const torch::Tensor inputs_bt =
        torch::from_blob(tokens.data() + (tokens.size() - static_cast<std::size_t>(context)),
                         {1, context}, torch::kInt64);
    const torch::Tensor logits_bv = model.next_token_logits(inputs_bt).contiguous();
    const std::span<const float> logits(logits_bv.data_ptr<float>(),
                                        static_cast<std::size_t>(logits_bv.size(1)));
    tokens.push_back(sampler.pick(
        logits.first(std::min(logits.size(), static_cast<std::size_t>(limits.vocab_size)))));
    if (!on_token(tokens.back())) return;
  }
}

}  // namespace sidestream::launch
