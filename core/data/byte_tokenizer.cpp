#include "core/data/byte_tokenizer.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace sidestream::data {
namespace {

constexpr std::string_view kEndOfTextWord = "<|endoftext|>";

class ByteEncoder final : public Encoder {
 public:
  explicit ByteEncoder(SpecialTokens special) : special_(special) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& ids) override {
    while (special_ == SpecialTokens::kParse) {
      const std::size_t word = text.find(kEndOfTextWord);
      if (word == std::string_view::npos) break;
      append(text.substr(0, word), ids);
      ids.push_back(ByteTokenizer::kEndOfText);
      text.remove_prefix(word + kEndOfTextWord.size());
    }
    append(text, ids);
  }

 private:
  static void append(std::string_view text, std::vector<std::uint32_t>& ids) {
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  }

  SpecialTokens special_;
};

}  // namespace

std::size_t ByteTokenizer::safe_cut(std::string_view text, std::size_t wanted) const {
  return std::min(wanted, text.size());
}

std::unique_ptr<Encoder> ByteTokenizer::make_encoder(SpecialTokens special) const {
  return std::make_unique<ByteEncoder>(special);
}

std::string ByteTokenizer::decode(std::span<const std::uint32_t> ids) const {
  std::string text;
  for (const std::uint32_t id : ids) {
    if (id > kEndOfText) {
      throw core::DataError("cannot decode token id " + std::to_string(id) +
                            ": the byte tokenizer ends at 256");
    }
    if (id == kEndOfText) {
      text += kEndOfTextWord;
    } else {
      text += static_cast<char>(id);
    }
  }
  return text;
}

}  // namespace sidestream::data
