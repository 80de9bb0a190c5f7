// Finds added tokens, such as <|endoftext|>, in a text before anything else looks at it: leftmost
// first, of those the longest; in one pass those that match the text as it is, in a second one
// those marked `normalized`.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/data/tokenizer.hpp"
#include "core/data/tokenizer_json.hpp"

namespace sidestream::data {

class AddedTokens {
 public:
  // Keeps copies of the tokens, and places among them: is not copied itself.
  explicit AddedTokens(const std::vector<AddedToken>& tokens);
  AddedTokens(const AddedTokens&) = delete;
  AddedTokens& operator=(const AddedTokens&) = delete;

  struct Sink {
    std::function<void(std::string_view)> on_text;
    std::function<void(std::uint32_t)> on_token;
  };

  // Calls the sink for each part in order. With kAsText special tokens are left inside the text.
  void split(std::string_view text, SpecialTokens special, const Sink& sink) const;

  bool any_contains(char character) const;

 private:
  using Pass = std::array<std::vector<const AddedToken*>, 256>;  // by first byte, longest first

  const AddedToken* find_at(const Pass& pass, std::string_view rest) const;
  void split_pass(std::size_t number, std::string_view text, SpecialTokens special,
                  const Sink& sink) const;

  std::vector<AddedToken> tokens_;
  std::vector<Pass> passes_;
};

}  // namespace sidestream::data
