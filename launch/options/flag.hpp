// What a user can write: a flag with its help, and a value with the place where it was given.
#pragma once

#include <string>
#include <vector>

namespace sidestream::launch {

enum class FlagKind {
  kValue,     // --name VALUE
  kSwitch,    // --name, or --name=off
  kRepeated,  // --name VALUE..., also several times
};

enum class FlagScope {
  kCommandLineAndFile,
  kCommandLine,  // makes sense for one call only: refused in a configuration file
};

struct Flag {
  std::string name;               // without the dashes; also the key in a configuration file
  std::string value_name;         // "N", "on|off"
  std::string help;               // one sentence with the unit
  std::string default_text = "";  // for --help; empty: what a default-constructed option struct has
  FlagKind kind = FlagKind::kValue;
  FlagScope scope = FlagScope::kCommandLineAndFile;
};

struct FlagGroup {
  std::string title;
  std::vector<Flag> flags;
};

// A switch that is off unless given; the second one is refused in a configuration file.
Flag switch_named(std::string name, std::string help);
Flag call_switch_named(std::string name, std::string help);

std::vector<std::string> names_of(const std::vector<FlagGroup>& groups);

// A value as it was written. `origin` starts every message about it: "--lr", "train.cfg:12: lr".
struct Given {
  std::string name;
  std::string value;
  std::string origin;
};

}  // namespace sidestream::launch
