#include "core/base/config_line.hpp"

namespace sidestream::core {
namespace {

constexpr std::string_view kBlanksOfConfig = " \t\r";

std::string_view without_outer_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanksOfConfig);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanksOfConfig) - first + 1);
}

// Position of a '#' that starts a comment, or the length of the text.
std::size_t comment_start(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#' && (i == 0 || kBlanksOfConfig.find(text[i - 1]) != std::string_view::npos))
      return i;
  }
  return text.size();
}

std::string_view without_comment(std::string_view text) {
  return without_outer_blanks(text.substr(0, comment_start(text)));
}

}  // namespace

ConfigLine read_config_line(std::string_view line) {
  ConfigLine result{.text = without_comment(line)};
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || equals > comment_start(line)) return result;
  result.key = without_outer_blanks(line.substr(0, equals));
  result.value = read_config_value(line.substr(equals + 1));
  return result;
}

std::optional<std::string> read_config_value(std::string_view text) {
  text = without_outer_blanks(text);
  if (text.empty() || text.front() != '"') return std::string(without_comment(text));
  const std::size_t close = text.find('"', 1);
  if (close == std::string_view::npos) return std::nullopt;
  if (!without_comment(text.substr(close + 1)).empty()) return std::nullopt;
  return std::string(text.substr(1, close - 1));
}

}  // namespace sidestream::core
