// A line "key = value" of a configuration file. '#' starts a comment at the beginning of a line or
// after a blank; a value in double quotes may hold one, and blanks at its ends. One place: whoever
// reads such a file reads the same values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sidestream::core {

struct ConfigLine {
  std::string_view text;               // without comment and outer blanks; empty: says nothing
  std::string_view key = {};           // empty: no assignment
  std::optional<std::string> value{};  // nothing: a quote is not closed, or something follows it
};

// Views of the line, which holds no line break.
ConfigLine read_config_line(std::string_view line);

// What stands after '='; nothing as in ConfigLine.
std::optional<std::string> read_config_value(std::string_view text);

}  // namespace sidestream::core
