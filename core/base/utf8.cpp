#include "core/base/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace sidestream::core {
namespace {

struct Sequence {
  std::size_t length = 0;  // 0: no lead byte
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
};

// The Unicode Standard, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
Sequence sequence_of(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {0};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

bool starts_valid(std::string_view rest, const Sequence& sequence) {
  if (sequence.length == 0 || sequence.length > rest.size()) return false;
  for (std::size_t i = 1; i < sequence.length; ++i) {
    const auto byte = static_cast<unsigned char>(rest[i]);
    const unsigned char min = i == 1 ? sequence.second_min : 0x80;
    const unsigned char max = i == 1 ? sequence.second_max : 0xBF;
    if (byte < min || byte > max) return false;
  }
  return true;
}

bool eight_ascii(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return (word & 0x8080808080808080u) == 0;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (i + 8 <= text.size() && eight_ascii(text.data() + i)) {
      i += 8;
      continue;
    }
    const Sequence sequence = sequence_of(static_cast<unsigned char>(text[i]));
    if (!starts_valid(text.substr(i), sequence)) return i;
    i += sequence.length;
  }
  return std::nullopt;
}

}  // namespace sidestream::core
