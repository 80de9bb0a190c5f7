// The part that the small commands share: one table of settings, one command line, no file.
#pragma once

#include <string>
#include <vector>

#include "launch/options/command_line.hpp"
#include "launch/options/setting.hpp"

namespace sidestream::launch {

// Throws ConfigError as parse_command_line and apply do.
template <typename Options>
Options parse_command(const std::vector<std::string>& arguments, const SettingTable<Options>& table,
                      const CommandLineRules& rules) {
  Options options;
  apply(table, parse_command_line(arguments, flags_of(table), rules), options);
  return options;
}

// A list of words: a flag that takes several values and may be repeated.
template <typename Options, typename Access>
Setting<Options> words(Flag flag, Access access) {
  flag.kind = FlagKind::kRepeated;
  return {std::move(flag),
          [=](Options& options, const std::string& text) { access(options).emplace_back(text); },
          [](const Options&) { return std::nullopt; }};
}

}  // namespace sidestream::launch
