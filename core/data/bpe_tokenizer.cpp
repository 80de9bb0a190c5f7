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

// The character that begins here is certainly no white space. Beyond ASCII white space is U+0085,
// U+00A0, U+1680, U+2000 to U+205F and U+3000: what begins as these do is left alone.
bool begins_no_space(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return lead > 0x20 && lead < 0x7F;
  const unsigned char next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0;
  return next >= 0x80 && lead != 0xC2 && !(lead == 0xE1 && next == 0x9A) &&
         !(lead == 0xE2 && next <= 0x81) && !(lead == 0xE3 && next == 0x80);
}

// The same of the character before `end`.
bool ends_in_no_space(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  for (int back = 0; back < 3 && at > 0 && core::is_utf8_continuation(text[at]); ++back) --at;
  return !core::is_utf8_continuation(text[at]) && begins_no_space(text.substr(0, end), at);
}

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
    constexpr std::size_t kLongest = std::size_t{1} << 30;
    if (word.size() > kLongest)
      throw core::DataError("cannot encode: a word of " + std::to_string(word.size()) +
                            " bytes without white space in it; at most " +
                            std::to_string(kLongest) + " fit");
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

// A line that ends between two characters that are no white space is a word of its own, and a space
// between two such characters begins one.
std::size_t BpeTokenizer::safe_cut(std::string_view text, std::size_t wanted) const {
  // A prefix space would come before a part that does not begin with one; a token that has the
  // character could be cut in two.
  const bool at_lines = !definition_.add_prefix_space && !added_.any_contains('\n');
  const bool at_spaces = !added_.any_contains(' ');
  for (std::size_t i = std::max<std::size_t>(wanted, 2); i + 1 < text.size(); ++i) {
    if (at_lines && text[i - 1] == '\n' && ends_in_no_space(text, i - 1) &&
        begins_no_space(text, i))
      return i;
    if (at_spaces && text[i] == ' ' && ends_in_no_space(text, i) && begins_no_space(text, i + 1))
      return i;
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
