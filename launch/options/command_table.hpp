// The first word after `sidestream`: which command, or which help.
#pragma once

#include <string>
#include <vector>

namespace sidestream::launch {

enum class Command { kTrain, kPrepare, kGenerate, kBench, kSummary, kVerify, kDoctor };

struct Invocation {
  enum class Action { kRun, kPrintText } action = Action::kRun;
  Command command = Command::kTrain;
  std::vector<std::string> arguments = {};  // for the command's parser
  std::string text = "";                    // kPrintText: print it and end with success
};

// `--help`, `help`, `help COMMAND`, `COMMAND --help` and `--version` become text; version_text is
// the summary of the build. Throws ConfigError for no command at all and for an unknown one, with
// the nearest name.
Invocation parse_invocation(int argc, const char* const* argv, const std::string& version_text);

// The list of commands.
std::string top_level_help();

}  // namespace sidestream::launch
