// One token a byte, and id 256 as end of text: needs no training and takes any file.
#pragma once

#include "core/data/tokenizer.hpp"

namespace sidestream::data {

class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::uint32_t kEndOfText = 256;

  std::string_view kind() const override { return "bytes"; }
  std::uint32_t vocab_size() const override { return kEndOfText + 1; }
  std::optional<std::uint32_t> find_end_of_text() const override { return kEndOfText; }
  std::size_t safe_cut(std::string_view text, std::size_t wanted) const override;
  bool needs_utf8() const override { return false; }
  std::unique_ptr<Encoder> make_encoder(SpecialTokens special) const override;
  std::string decode(
      std::span<const std::uint32_t> ids) const override;  // end of text: "<|endoftext|>"
};

}  // namespace sidestream::data
