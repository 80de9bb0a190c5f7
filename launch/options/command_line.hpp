// The command line of one command, and its help, by Boost.Program_options.
#pragma once

#include <string>
#include <vector>

#include "launch/options/flag.hpp"

namespace sidestream::launch {

struct CommandLineRules {
  std::string command;          // for messages: "train"
  std::string positional = "";  // name of the flag that takes words without dashes; empty: none
  std::string program = "sidestream";
};

// Values in the order of the command line. Names have to be complete. Throws ConfigError for an
// unknown flag (with the nearest one), an abbreviation, a flag given twice, a missing value, a
// stray word.
std::vector<Given> parse_command_line(const std::vector<std::string>& arguments,
                                      const std::vector<FlagGroup>& groups,
                                      const CommandLineRules& rules);

// The groups with one entry a flag, wrapped to width_columns.
std::string flags_help(const std::vector<FlagGroup>& groups, int width_columns);

// Columns of the terminal on standard output; 100 when it is none. COLUMNS overrides it.
int help_width_columns();

}  // namespace sidestream::launch
