#include "profiling/advice/ncu_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "profiling/advice/ncu_csv.hpp"
#include "profiling/advice/operation_kind.hpp"
#include "profiling/trace/kind.hpp"

namespace sidestream::advice {
namespace {

constexpr std::size_t kLongestPattern = 120;

bool is_kernel(const std::string& name) {
  return !is_copy(name) && !trace::is_collective_kernel(name) && !name.starts_with("aten::") &&
         !name.starts_with("sidestream::") && !is_phase(name);
}

// Names of the function and of what its template was made with, in their order. Demanglers differ
// in what stands between them.
std::string pattern_of(const std::string& kernel) {
  const std::string key = kernel_key(kernel);
  const std::string function = function_of(kernel);
  std::string pattern = function, word;
  for (std::size_t at = key.find(function) + function.size(); at <= key.size(); ++at) {
    const char one = at < key.size() ? key[at] : ' ';
    if (std::isalnum(static_cast<unsigned char>(one)) != 0 || one == '_') {
      word += one;
      continue;
    }
    // A key has no blanks: "unsigned int" is one word in it, and two for ncu.
    const bool name = !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
                      !word.starts_with("unsigned");
    if (name && pattern.size() + word.size() < kLongestPattern) pattern += ".*" + word;
    word.clear();
  }
  return pattern;
}

// The recorded command with another run directory, and without the profiler's flags.
std::vector<std::string> fresh_command(const std::vector<std::string>& program, int number) {
  std::vector<std::string> words;
  std::string folder = "run";
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::string& word = program[i];
    const std::string flag = word.substr(0, word.find('='));
    const bool run_folder = flag == "--run-dir";
    if (!run_folder && flag != "--resume" && !flag.starts_with("--profile")) {
      words.push_back(word);
      continue;
    }
    std::string value = word.size() > flag.size() ? word.substr(flag.size() + 1) : "";
    const bool next_is_value = i + 1 < program.size() && !program[i + 1].starts_with("--");
    if (word == flag && next_is_value) value = program[++i];
    if (run_folder && !value.empty()) folder = value;
  }
  words.push_back("--run-dir");
  words.push_back(fmt::format("{}_ncu{}", folder, number));
  return words;
}

}  // namespace

std::vector<std::string> words_of(const std::string& command_line) {
  std::istringstream stream(command_line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> ncu_commands(const std::vector<MeasuredKernel>& kernels,
                                      const std::vector<std::string>& program) {
  constexpr int kLaunches = 5;
  std::vector<std::string> commands;
  std::set<std::string> seen;
  for (const MeasuredKernel& kernel : kernels) {
    if (!is_kernel(kernel.name) || !seen.insert(kernel_key(kernel.name)).second) continue;
    const int number = static_cast<int>(commands.size()) + 1;
    const auto words = program.empty() ? std::vector<std::string>{"PROGRAM", "..."}
                                       : fresh_command(program, number);
    // The first steps warm up.
    const int skipped = static_cast<int>(3 * kernel.per_step);
    commands.push_back(fmt::format(
        "ncu --csv --page raw --target-processes all --kernel-name-base demangled --kernel-name "
        "'regex:{}' --launch-skip {} --launch-count {} --metrics {} {} > ncu{}.csv",
        pattern_of(kernel.name), skipped, kLaunches, ncu_metrics(), fmt::join(words, " "), number));
  }
  return commands;
}

}  // namespace sidestream::advice
