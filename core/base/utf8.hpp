// Whether bytes are UTF-8, which the splitter relies on and files of unknown origin are not.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sidestream::core {

// Whether the byte is inside of a character, and does not begin one.
constexpr bool is_utf8_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Offset of the first byte that does not start a valid character.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

}  // namespace sidestream::core
