// Text of files and other strangers, on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace sidestream::core {

// Names may hold line breaks and escape sequences: every control character becomes '?'.
std::string printable(std::string_view text);

// The same for a message of several lines: line breaks and tabs stay.
std::string printable_lines(std::string_view text);

}  // namespace sidestream::core
