// Text of a trace on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace sidestream::report {

// Names may hold line breaks and escape sequences: every control character becomes '?'.
std::string printable(std::string_view text);

}  // namespace sidestream::report
