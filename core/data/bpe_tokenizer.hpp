// Byte-level BPE with GPT-2's pattern, equal to Hugging Face's `tokenizers` on the same
// tokenizer.json.
//
// Unicode versions may differ: letters and digits that were assigned after the PCRE2 in use was
// made are taken for other characters (see the folder's README).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/data/added_tokens.hpp"
#include "core/data/bpe_merger.hpp"
#include "core/data/gpt2_splitter.hpp"
#include "core/data/tokenizer.hpp"
#include "core/data/tokenizer_json.hpp"

namespace sidestream::data {

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeDefinition definition);

  std::string_view kind() const override { return "bpe"; }
  std::uint32_t vocab_size() const override {
    return static_cast<std::uint32_t>(definition_.tokens.size());
  }
  std::optional<std::uint32_t> find_end_of_text() const override { return definition_.end_of_text; }
  // After a newline, or before a space, between two characters that are no white space: there
  // GPT-2's pattern cuts whatever surrounds it.
  std::size_t safe_cut(std::string_view text, std::size_t wanted) const override;
  bool needs_utf8() const override { return true; }
  std::unique_ptr<Encoder> make_encoder(SpecialTokens special) const override;
  std::string decode(std::span<const std::uint32_t> ids) const override;

 private:
  friend class BpeEncoder;

  BpeDefinition definition_;
  MergeTable merges_;
  AddedTokens added_;
  Gpt2Pattern pattern_;
  std::unordered_map<std::string_view, std::uint32_t> words_;  // only with ignore_merges
};

}  // namespace sidestream::data
