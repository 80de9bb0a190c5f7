// Whether bytes are UTF-8, which the splitter relies on and files of unknown origin are not.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sidestream::core {

// Offset of the first byte that does not start a valid character.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

}  // namespace sidestream::core
