#include "launch/options/config_file.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/printable.hpp"
#include "core/base/utf8.hpp"
#include "launch/options/nearest_name.hpp"

namespace sidestream::launch {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

// Position of a '#' that starts a comment, or the length of the text.
std::size_t comment_start(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#' && (i == 0 || is_blank(text[i - 1]))) return i;
  }
  return text.size();
}

std::string_view without_comment(std::string_view text) {
  return trimmed(text.substr(0, comment_start(text)));
}

// What stands after '=': nothing when a quote is not closed or something follows it.
std::optional<std::string> value_of(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text.front() != '"') return std::string(without_comment(text));
  const std::size_t close = text.find('"', 1);
  if (close == std::string_view::npos) return std::nullopt;
  if (!without_comment(text.substr(close + 1)).empty()) return std::nullopt;
  return std::string(text.substr(1, close - 1));
}

class Parser {
 public:
  Parser(std::string name, const std::vector<FlagGroup>& groups)
      : name_(std::move(name)), names_(names_of(groups)) {
    for (const FlagGroup& group : groups) {
      for (const Flag& flag : group.flags) flags_.emplace(flag.name, &flag);
    }
  }

  void line(std::string_view text, int number) {
    number_ = number;
    if (without_comment(text).empty()) return;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals > comment_start(text)) {
      fail(fmt::format("expected 'key = value', found '{}'", without_comment(text)));
    }
    const std::string key(trimmed(text.substr(0, equals)));
    if (key.empty()) fail(fmt::format("expected 'key = value', found '{}'", without_comment(text)));
    check_key(key);
    const std::optional<std::string> value = value_of(text.substr(equals + 1));
    if (!value) fail(fmt::format("{}: expected one value, or one in double quotes", key));
    given_.push_back({key, *value, fmt::format("{}:{}: {}", name_, number, key)});
  }

  std::vector<Given> take() { return std::move(given_); }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw core::ConfigError(fmt::format("{}:{}: {}", name_, number_, message));
  }

  void check_key(const std::string& key) {
    const auto flag = flags_.find(key);
    if (flag == flags_.end())
      fail(fmt::format("unknown key '{}'.{}", key, did_you_mean(key, names_)));
    if (flag->second->scope == FlagScope::kCommandLine) {
      fail(fmt::format("'{0}' belongs on the command line (--{0}), not in a file", key));
    }
    const auto [seen, inserted] = lines_.emplace(key, number_);
    if (!inserted)
      fail(fmt::format("'{}' is given twice; the first is on line {}", key, seen->second));
  }

  std::string name_;
  std::vector<std::string> names_;
  std::map<std::string, const Flag*> flags_;
  std::map<std::string, int> lines_;
  std::vector<Given> given_;
  int number_ = 0;
};

}  // namespace

std::vector<Given> read_config_file(const std::filesystem::path& path,
                                    const std::vector<FlagGroup>& groups) {
  std::string text;
  try {
    text = core::read_file(path, kConfigFileLimitBytes);
  } catch (const core::Error& error) {
    throw core::ConfigError(fmt::format("--config: {}", error.what()));
  }
  return parse_config_text(text, path.string(), groups);
}

std::vector<Given> parse_config_text(std::string_view text, const std::string& name,
                                     const std::vector<FlagGroup>& groups) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of editors on Windows
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw core::ConfigError(
        fmt::format("{}: expected text in UTF-8, found a zero byte at offset {}: no text, or saved "
                    "as UTF-16 (`iconv -f UTF-16 -t UTF-8` changes that)",
                    name, zero));
  }
  Parser parser(name, groups);
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    parser.line(text.substr(0, end), ++number);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return parser.take();
}

std::string config_value_text(const std::string& value) {
  if (const auto bad = core::find_invalid_utf8(value)) {
    throw core::ConfigError(fmt::format(
        "'{}' cannot be written to a configuration file: expected UTF-8, found another byte at "
        "offset {}",
        core::printable(value), *bad));
  }
  const bool plain = trimmed(value) == value && comment_start(value) == value.size() &&
                     (value.empty() || value.front() != '"');
  if (value.find('\n') != std::string::npos || (!plain && value.find('"') != std::string::npos)) {
    throw core::ConfigError(
        fmt::format("'{}' cannot be written to a configuration file: it holds a line break, or "
                    "a double quote together with '#' or outer spaces",
                    value));
  }
  return plain ? value : fmt::format("\"{}\"", value);
}

}  // namespace sidestream::launch
