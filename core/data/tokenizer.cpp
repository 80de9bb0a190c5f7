#include "core/data/tokenizer.hpp"

#include <filesystem>
#include <utility>

#include "core/base/error.hpp"
#include "core/data/bpe_tokenizer.hpp"
#include "core/data/byte_tokenizer.hpp"

namespace sidestream::data {

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<std::uint32_t> ids;
  make_encoder(special)->encode(text, ids);
  return ids;
}

std::uint32_t Tokenizer::end_of_text() const {
  if (const auto id = find_end_of_text()) return *id;
  throw core::DataError(
      "the tokenizer has no token that ends a text: expected <|endoftext|>, <|end_of_text|> or "
      "</s> "
      "among added_tokens");
}

TokenizerWithText open_tokenizer_with_text(const std::string& name) {
  if (name == "bytes") return {.tokenizer = std::make_unique<ByteTokenizer>(), .text = {}};
  std::filesystem::path path = name;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "tokenizer.json";
  std::string text = read_tokenizer_text(path);
  auto tokenizer = std::make_unique<BpeTokenizer>(parse_tokenizer_json(text, path.string()));
  return {.tokenizer = std::move(tokenizer), .text = std::move(text)};
}

std::unique_ptr<const Tokenizer> open_tokenizer(const std::string& name) {
  return open_tokenizer_with_text(name).tokenizer;
}

}  // namespace sidestream::data
