#include "launch/options/command_line.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdlib>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "launch/options/nearest_name.hpp"

namespace sidestream::launch {
namespace {

namespace po = boost::program_options;

po::value_semantic* semantic_of(const Flag& flag) {
  if (flag.kind == FlagKind::kRepeated) {
    return po::value<std::vector<std::string>>()->multitoken()->composing()->value_name(
        flag.value_name);
  }
  auto* value = po::value<std::string>();
  if (flag.kind == FlagKind::kSwitch) return value->implicit_value("on", "")->value_name("[=off]");
  return value->value_name(flag.value_name);
}

po::options_description description_of(const FlagGroup& group, unsigned width) {
  po::options_description description(group.title, width, width / 2);
  for (const Flag& flag : group.flags) {
    const std::string help = flag.default_text.empty()
                                 ? flag.help
                                 : fmt::format("{} [{}]", flag.help, flag.default_text);
    description.add_options()(flag.name.c_str(), semantic_of(flag), help.c_str());
  }
  return description;
}

po::options_description description_of(const std::vector<FlagGroup>& groups, unsigned width) {
  po::options_description all("", width, width / 2);
  for (const FlagGroup& group : groups) all.add(description_of(group, width));
  return all;
}

[[noreturn]] void refuse_unknown(std::string word, const std::vector<FlagGroup>& groups,
                                 const CommandLineRules& rules) {
  word = word.substr(0, word.find('='));
  const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  std::vector<std::string> names = names_of(groups);
  names.emplace_back("help");  // of every command, in no table
  const std::string hint = did_you_mean(word.substr(dashes), names, "--");
  throw core::ConfigError(
      fmt::format("unknown flag '{}'.{} Names have to be complete; see `{} {} --help`", word, hint,
                  rules.program, rules.command));
}

// Boost would take the flag in `--steps --lr 1` as the value of --steps.
void check_values_are_there(const std::vector<std::string>& arguments,
                            const std::vector<FlagGroup>& groups) {
  std::set<std::string> with_value, all;
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      all.insert("--" + flag.name);
      if (flag.kind != FlagKind::kSwitch) with_value.insert("--" + flag.name);
    }
  }
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (with_value.contains(arguments[i]) && all.contains(arguments[i + 1])) {
      throw core::ConfigError(
          fmt::format("{}: expected a value, found the flag {}", arguments[i], arguments[i + 1]));
    }
  }
}

// Boost takes `--new=` for a flag without a value: it has an empty one, as in `--new ""`.
std::vector<std::string> with_empty_values(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& one : arguments) {
    const bool empty = one.starts_with("--") && one.find('=') == one.size() - 1;
    words.push_back(empty ? one.substr(0, one.size() - 1) : one);
    if (empty) words.emplace_back();
  }
  return words;
}

std::vector<po::option> split(const std::vector<std::string>& arguments,
                              const std::vector<FlagGroup>& groups, const CommandLineRules& rules) {
  namespace style = po::command_line_style;
  check_values_are_there(arguments, groups);
  const po::options_description description = description_of(groups, 100);
  po::positional_options_description positional;
  if (!rules.positional.empty()) positional.add(rules.positional.c_str(), -1);
  try {
    return po::command_line_parser(with_empty_values(arguments))
        .options(description)
        .positional(positional)
        .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next)
        .run()
        .options;
  } catch (const po::unknown_option& error) {
    refuse_unknown(error.get_option_name(), groups, rules);
  } catch (const po::invalid_command_line_syntax& error) {
    throw core::ConfigError(
        fmt::format("{}: expected a value, found none", error.get_option_name()));
  } catch (const po::too_many_positional_options_error&) {
    throw core::ConfigError(
        fmt::format("`{} {}` takes flags only: every value needs its --flag before it",
                    rules.program, rules.command));
  } catch (const po::error& error) {
    throw core::ConfigError(error.what());
  }
}

const Flag& flag_named(const std::vector<FlagGroup>& groups, const std::string& name) {
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      if (flag.name == name) return flag;
    }
  }
  throw core::ConfigError(fmt::format("unknown flag '--{}'", name));
}

}  // namespace

std::vector<Given> parse_command_line(const std::vector<std::string>& arguments,
                                      const std::vector<FlagGroup>& groups,
                                      const CommandLineRules& rules) {
  std::vector<Given> given;
  std::set<std::string> seen;
  for (const po::option& option : split(arguments, groups, rules)) {
    const Flag& flag = flag_named(groups, option.string_key);
    const std::string origin = "--" + flag.name;
    const bool first = seen.insert(flag.name).second;
    if (!first && flag.kind != FlagKind::kRepeated) {
      throw core::ConfigError(fmt::format("{} is given twice; once is enough", origin));
    }
    if (option.value.empty()) given.push_back({flag.name, "on", origin});
    for (const std::string& value : option.value) given.push_back({flag.name, value, origin});
  }
  return given;
}

std::string flags_help(const std::vector<FlagGroup>& groups, int width_columns) {
  std::ostringstream text;
  text << description_of(groups, static_cast<unsigned>(width_columns));
  return text.str();
}

int help_width_columns() {
  constexpr int kNarrowest = 60, kWidest = 120, kWithoutTerminal = 100;
  int columns = kWithoutTerminal;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
  if (const char* text = std::getenv("COLUMNS"); text != nullptr && std::atoi(text) > 0)
    columns = std::atoi(text);
  return std::clamp(columns, kNarrowest, kWidest);
}

}  // namespace sidestream::launch
