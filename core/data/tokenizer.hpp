// Text to token ids and back.
//
//   const auto tokenizer = open_tokenizer("build/corpus/tokenizer.json");   // or "bytes"
//   const auto ids = tokenizer->encode("template <typename T>");
//
// A Tokenizer never changes and is shared by threads; an Encoder holds one thread's scratch memory
// and cache of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sidestream::data {

// Whether "<|endoftext|>" in a text is that token, as in a prompt, or thirteen characters, as in a
// corpus.
enum class SpecialTokens : std::uint8_t { kParse, kAsText };

class Encoder {
 public:
  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  virtual ~Encoder() = default;

  // Appends the ids of `text`. Throws DataError with the byte offset when text is not UTF-8 and has
  // to be.
  virtual void encode(std::string_view text, std::vector<std::uint32_t>& ids) = 0;
};

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;

  virtual std::string_view kind() const = 0;  // "bytes" or "bpe"
  virtual std::uint32_t vocab_size() const = 0;
  // The id that separates documents, where there is one.
  virtual std::optional<std::uint32_t> find_end_of_text() const = 0;
  // Throws DataError where there is none.
  std::uint32_t end_of_text() const;
  // The smallest offset >= wanted where text may be cut without changing any id, or text.size().
  virtual std::size_t safe_cut(std::string_view text, std::size_t wanted) const = 0;
  // Whether only UTF-8 can be encoded.
  virtual bool needs_utf8() const = 0;

  virtual std::unique_ptr<Encoder> make_encoder(SpecialTokens special) const = 0;
  std::vector<std::uint32_t> encode(std::string_view text,
                                    SpecialTokens special = SpecialTokens::kParse) const;

  // The bytes of the ids, which need not be whole UTF-8 characters. Throws DataError for an id
  // beyond the vocabulary.
  virtual std::string decode(std::span<const std::uint32_t> ids) const = 0;
};

// A tokenizer and the text that it was made from, for those who leave a copy of it somewhere: by
// then the file may be gone, or another one.
struct TokenizerWithText {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::string text;  // of its tokenizer.json; empty: "bytes", which has none
};

// "bytes", a tokenizer.json, or a folder that holds one. Both throw DataError.
TokenizerWithText open_tokenizer_with_text(const std::string& name);
std::unique_ptr<const Tokenizer> open_tokenizer(const std::string& name);

}  // namespace sidestream::data
