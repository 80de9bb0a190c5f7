// GPT-2's printable stand-ins for bytes, in which a byte-level tokenizer.json spells its tokens:
// printable Latin-1 bytes stand for themselves, the other 68 are code points from U+0100 on.
// https://github.com/openai/gpt-2 (src/encoder.py, bytes_to_unicode)
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sidestream::data {

// UTF-8 of each byte's stand-in.
std::array<std::string, 256> byte_alphabet();

// The bytes that a spelled token means; nothing when a character is no stand-in.
class ByteSpelling {
 public:
  ByteSpelling();
  std::optional<std::string> bytes_of(std::string_view spelled) const;

 private:
  std::array<int, 512> byte_of_{};  // by code point; -1: no stand-in
};

}  // namespace sidestream::data
