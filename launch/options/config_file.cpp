#include "launch/options/config_file.hpp"

#include <fmt/format.h>

#include <map>

#include "core/base/config_line.hpp"
#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/printable.hpp"
#include "core/base/utf8.hpp"
#include "launch/options/nearest_name.hpp"

namespace sidestream::launch {
namespace {

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
    const core::ConfigLine line = core::read_config_line(text);
    if (line.text.empty()) return;
    if (line.key.empty()) fail(fmt::format("expected 'key = value', found '{}'", line.text));
    const std::string key(line.key);
    check_key(key);
    if (!line.value) fail(fmt::format("{}: expected one value, or one in double quotes", key));
    given_.push_back({key, *line.value, fmt::format("{}:{}: {}", name_, number, key)});
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
  const bool plain = core::read_config_value(value) == value;
  if (value.find('\n') != std::string::npos || (!plain && value.find('"') != std::string::npos)) {
    throw core::ConfigError(
        fmt::format("'{}' cannot be written to a configuration file: it holds a line break, or "
                    "a double quote together with '#' or outer spaces",
                    value));
  }
  return plain ? value : fmt::format("\"{}\"", value);
}

}  // namespace sidestream::launch
