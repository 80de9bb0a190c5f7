#include "core/data/added_tokens.hpp"

#include <algorithm>

namespace sidestream::data {

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens) : tokens_(tokens) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.text.size() > b.text.size();
  });
  for (const bool normalized : {false, true}) {
    Pass pass;
    bool any = false;
    for (const AddedToken& token : tokens_) {
      if (token.normalized != normalized) continue;
      pass[static_cast<unsigned char>(token.text.front())].push_back(&token);
      any = true;
    }
    if (any) passes_.push_back(std::move(pass));
  }
}

bool AddedTokens::any_contains(char character) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const AddedToken& token) {
    return token.text.find(character) != std::string::npos;
  });
}

void AddedTokens::split(std::string_view text, SpecialTokens special, const Sink& sink) const {
  split_pass(0, text, special, sink);
}

const AddedToken* AddedTokens::find_at(const Pass& pass, std::string_view rest) const {
  for (const AddedToken* token : pass[static_cast<unsigned char>(rest.front())]) {
    if (rest.starts_with(token->text)) return token;
  }
  return nullptr;
}

void AddedTokens::split_pass(std::size_t number, std::string_view text, SpecialTokens special,
                             const Sink& sink) const {
  if (number == passes_.size()) {
    if (!text.empty()) sink.on_text(text);
    return;
  }
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const AddedToken* token = find_at(passes_[number], text.substr(i));
    if (token == nullptr) {
      ++i;
      continue;
    }
    const std::size_t end = i + token->text.size();
    if (!(token->special && special == SpecialTokens::kAsText)) {
      split_pass(number + 1, text.substr(start, i - start), special, sink);
      sink.on_token(token->id);
      start = end;
    }
    i = end;
  }
  split_pass(number + 1, text.substr(start), special, sink);
}

}  // namespace sidestream::data
