// Text from a profiler that cut a name in the middle of
// a character, or copied one from a foreign encoding.
#pragma once

#include <string>
#include <string_view>

namespace sidestream::trace {

// Every byte that belongs to no valid UTF-8 sequence (RFC 3629), and every control character but
// tabs and line breaks, becomes '?'.
std::string with_valid_utf8(std::string_view text);

}  // namespace sidestream::trace
