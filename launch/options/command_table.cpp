#include "launch/options/command_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/base/error.hpp"
#include "launch/options/bench_options.hpp"
#include "launch/options/command_line.hpp"
#include "launch/options/doctor_options.hpp"
#include "launch/options/exit_codes.hpp"
#include "launch/options/generate_options.hpp"
#include "launch/options/nearest_name.hpp"
#include "launch/options/prepare_options.hpp"
#include "launch/options/summary_options.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/options/verify_options.hpp"

namespace sidestream::launch {
namespace {

struct Entry {
  std::string name;
  Command command;
  std::string summary;
  std::function<std::string(int)> help;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {"train", Command::kTrain, "train a model, alone or under mpirun", train_help},
      {"prepare", Command::kPrepare, "turn text into token shards", prepare_help},
      {"generate", Command::kGenerate, "continue a text with a trained model", generate_help},
      {"bench", Command::kBench, "measure what this machine can do at most", bench_help},
      {"summary", Command::kSummary, "lay runs side by side", summary_help},
      {"verify", Command::kVerify, "prove that a change is faster and learns the same",
       verify_help},
      {"doctor", Command::kDoctor, "look whether training can start here, and what is missing",
       doctor_help}};
  return all;
}

const Entry& entry_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw core::ConfigError(fmt::format("unknown command '{}'.{} See `sidestream --help`", name,
                                      did_you_mean(name, names)));
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

Invocation printing(std::string text) {
  return {.action = Invocation::Action::kPrintText, .text = std::move(text)};
}

}  // namespace

std::string top_level_help() {
  std::string text =
      "Sidestream: data-parallel training under mpirun, and the timeline that explains it.\n\n"
      "  sidestream prepare --input src --output data/mine\n"
      "  mpirun -np 2 sidestream train --model gpt2-mini --data data/mine --run-dir runs/a\n\n"
      "Commands (`sidestream help COMMAND` explains one):\n";
  for (const Entry& entry : entries())
    text += fmt::format("  {:<10} {}\n", entry.name, entry.summary);
  return text + "\n  --help     this text\n  --version  version, and what the build found\n\n" +
         kExitCodes;
}

Invocation parse_invocation(int argc, const char* const* argv, const std::string& version_text) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) throw core::ConfigError("no command given.\n\n" + top_level_help());
  const std::string first = words.front();
  words.erase(words.begin());
  if (first == "--version") {
    if (!words.empty())
      throw core::ConfigError("--version takes no arguments, found " + words.front());
    return printing(version_text);
  }
  if (asks_for_help(first)) return printing(top_level_help());
  if (first == "help") {
    return printing(words.empty() ? top_level_help()
                                  : entry_named(words.front()).help(help_width_columns()));
  }
  const Entry& entry = entry_named(first);
  if (std::any_of(words.begin(), words.end(), asks_for_help))
    return printing(entry.help(help_width_columns()));
  return {.command = entry.command, .arguments = std::move(words)};
}

}  // namespace sidestream::launch
