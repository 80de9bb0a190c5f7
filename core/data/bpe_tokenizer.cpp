#include "core/data/bpe_tokenizer.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"

namespace sidestream::data {
namespace {

constexpr std::size_t kMaxCachedWords = std::size_t{1} << 18;
constexpr std::size_t kMaxCachedBytes = 64;

struct WordHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view word) const {
    return std::hash<std::string_view>{}(word);
  }
};

bool printable(char character) { return character > 0x20 && character < 0x7F; }

}  // namespace

class BpeEncoder final : public Encoder {
 public:
  BpeEncoder(const BpeTokenizer& tokenizer, SpecialTokens special)
      : tokenizer_(tokenizer),
        special_(special),
        splitter_(tokenizer.pattern_),
        merger_(tokenizer.merges_) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& ids) override {
    if (const auto bad = core::find_invalid_utf8(text)) {
      throw core::DataError("cannot encode: the text is not UTF-8 at byte " + std::to_string(*bad));
    }
    tokenizer_.added_.split(text, special_,
                            {.on_text = [&](std::string_view part) { encode_part(part, ids); },
                             .on_token = [&](std::uint32_t id) { ids.push_back(id); }});
  }

 private:
  struct CachedWord {
    std::uint32_t first = 0;  // in cached_ids_
    std::uint32_t count = 0;
  };

  void encode_part(std::string_view part, std::vector<std::uint32_t>& ids) {
    if (tokenizer_.definition_.add_prefix_space && part.front() != ' ') {
      prefixed_.assign(1, ' ').append(part);
      part = prefixed_;
    }
    for (std::size_t start = 0; start < part.size();) {
      const std::size_t end = splitter_.word_end(part, start);
      encode_word(part.substr(start, end - start), ids);
      start = end;
    }
  }

  void encode_word(std::string_view word, std::vector<std::uint32_t>& ids) {
    const auto found = cache_.find(word);
    if (found != cache_.end()) {
      const auto first = cached_ids_.begin() + found->second.first;
      ids.insert(ids.end(), first, first + found->second.count);
      return;
    }
    merge_word(word);
    ids.insert(ids.end(), symbols_.begin(), symbols_.end());
    if (word.size() > kMaxCachedBytes || cache_.size() == kMaxCachedWords) return;
    cache_.emplace(word, CachedWord{static_cast<std::uint32_t>(cached_ids_.size()),
                                    static_cast<std::uint32_t>(symbols_.size())});
    cached_ids_.insert(cached_ids_.end(), symbols_.begin(), symbols_.end());
  }

  // Leaves the ids in symbols_.
  void merge_word(std::string_view word) {
    symbols_.clear();
    const auto whole = tokenizer_.words_.find(word);
    if (whole != tokenizer_.words_.end()) {
      symbols_.push_back(whole->second);
      return;
    }
    for (const char byte : word) {
      symbols_.push_back(tokenizer_.definition_.byte_ids[static_cast<unsigned char>(byte)]);
    }
    merger_.merge(symbols_);
  }

  const BpeTokenizer& tokenizer_;
  SpecialTokens special_;
  Gpt2Splitter splitter_;
  BpeMerger merger_;
  std::vector<std::uint32_t> symbols_;
  std::string prefixed_;
  std::unordered_map<std::string, CachedWord, WordHash, std::equal_to<>> cache_;
  std::vector<std::uint32_t> cached_ids_;
};

BpeTokenizer::BpeTokenizer(BpeDefinition definition)
    : definition_(std::move(definition)), merges_(definition_.merges), added_(definition_.added) {
  if (!definition_.ignore_merges) return;
  for (std::uint32_t id = 0; id < vocab_size(); ++id) words_.emplace(definition_.tokens[id], id);
  for (const AddedToken& token : definition_.added) words_.erase(token.text);
}

std::uint32_t BpeTokenizer::end_of_text() const {
  if (!definition_.end_of_text) {
    throw core::DataError(
        "the tokenizer has no token that ends a text: expected <|endoftext|> among added_tokens");
  }
  return *definition_.end_of_text;
}

std::size_t BpeTokenizer::safe_cut(std::string_view text, std::size_t wanted) const {
  // A prefix space would come before each part, and a token with a newline could be cut in two.
  if (definition_.add_prefix_space || added_.any_contains('\n')) return text.size();
  for (std::size_t i = std::max<std::size_t>(wanted, 2); i < text.size(); ++i) {
    if (text[i - 1] == '\n' && printable(text[i - 2]) && printable(text[i])) return i;
  }
  return text.size();
}

std::unique_ptr<Encoder> BpeTokenizer::make_encoder(SpecialTokens special) const {
  return std::make_unique<BpeEncoder>(*this, special);
}

std::string BpeTokenizer::decode(std::span<const std::uint32_t> ids) const {
  std::string text;
  for (const std::uint32_t id : ids) {
    if (id >= vocab_size()) {
      throw core::DataError("cannot decode token id " + std::to_string(id) +
                            ": the vocabulary has " + std::to_string(vocab_size()) + " tokens");
    }
    text += definition_.tokens[id];
  }
  return text;
}

}  // namespace sidestream::data
