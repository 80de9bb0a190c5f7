#include "profiling/advice/ncu_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "core/base/shell_words.hpp"
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

bool is_digit(char one) { return std::isdigit(static_cast<unsigned char>(one)) != 0; }

bool is_of_word(char one) {
  return std::isalnum(static_cast<unsigned char>(one)) != 0 || one == '_';
}

// Runs of letters, digits and underscores. `scoped`: "::" follows, as after a namespace.
struct Word {
  std::string text;
  bool scoped = false;
};
std::vector<Word> words_in(const std::string& text, std::size_t from) {
  std::vector<Word> words;
  for (std::size_t at = from; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_of_word(text[end])) ++end;
    if (end > at) words.push_back({text.substr(at, end - at), text.compare(end, 2, "::") == 0});
    at = std::max(end, at + 1);
  }
  return words;
}

bool is_number(const std::string& word) { return is_digit(word.front()); }

// Demanglers write 16 as "16", "16u" and "(unsigned int)16", and 1 also as "true".
std::string value_of(const std::string& word) {
  if (word == "true") return "1";
  if (word == "false") return "0";
  return word.substr(0, word.find_first_not_of("0123456789"));
}

std::string regex_of(const std::string& word) {
  if (!is_number(word)) return "\\b" + word + "\\b";
  const std::string value = value_of(word);
  if (value == "0") return "\\b(0|false)\\D";
  return value == "1" ? "\\b(1|true)\\D" : "\\b" + value + "\\D";
}

// The function and what its template was made with, numbers too, in their order: vectorised kernels
// differ in nothing else. Namespaces are left out, for the length. Demanglers differ in what stands
// between the words.
class Pattern {
 public:
  explicit Pattern(const std::string& kernel) {
    const std::string key = kernel_key(kernel), function = function_of(kernel);
    for (const Word& word : words_in(function, 0)) add(word.text);
    for (const Word& word : words_in(key, key.find(function) + function.size())) {
      // A key has no blanks: "unsigned int" is one word in it, and two for ncu.
      const bool joined = word.text.starts_with("unsigned") || word.text == "longlong";
      if (!joined && !word.scoped) add(word.text);
    }
  }

  const std::string& regex() const { return regex_; }

  // As the regular expression does. std::regex recurses, and a name is as long as a file likes.
  bool fits(const std::string& kernel) const {
    std::size_t next = 0;
    for (const Word& word : words_in(kernel, 0)) {
      if (next == words_.size()) break;
      const std::string& wanted = words_[next];
      const bool same =
          is_number(wanted) ? value_of(word.text) == value_of(wanted) : word.text == wanted;
      if (same) ++next;
    }
    return next == words_.size();
  }

 private:
  void add(const std::string& word) {
    const std::string more = (words_.empty() ? "" : ".*") + regex_of(word);
    if (!words_.empty() && regex_.size() + more.size() > kLongestPattern) return;
    regex_ += more;
    words_.push_back(word);
  }

  std::string regex_;
  std::vector<std::string> words_;
};

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

// Launches of a step that ncu counts for this kernel: those of others that the pattern fits too.
double counted_per_step(const MeasuredKernel& kernel, const Pattern& pattern,
                        const std::vector<MeasuredKernel>& launched) {
  double all = kernel.per_step;
  for (const MeasuredKernel& other : launched) {
    if (other.name != kernel.name && is_kernel(other.name) && pattern.fits(other.name))
      all += other.per_step;
  }
  return all;
}

// So many that some of the kernel's own are among them.
int launches_to_measure(const MeasuredKernel& kernel, double counted) {
  constexpr double kLaunches = 5, kMost = 100;
  const double factor = kernel.per_step > 0 ? counted / kernel.per_step : 1;
  return static_cast<int>(std::min(kMost, std::ceil(kLaunches * factor)));
}

}  // namespace

std::vector<std::string> ncu_commands(const std::vector<MeasuredKernel>& kernels,
                                      const std::vector<MeasuredKernel>& launched,
                                      const std::vector<std::string>& program) {
  std::vector<std::string> commands;
  std::set<std::string> seen;
  for (const MeasuredKernel& kernel : kernels) {
    if (!is_kernel(kernel.name) || !seen.insert(kernel_key(kernel.name)).second) continue;
    const Pattern pattern(kernel.name);
    if (pattern.regex().empty()) continue;
    const int number = static_cast<int>(commands.size()) + 1;
    const auto words = program.empty() ? std::vector<std::string>{"PROGRAM", "..."}
                                       : fresh_command(program, number);
    const double counted = counted_per_step(kernel, pattern, launched);
    // The first steps warm up.
    const int skipped = static_cast<int>(3 * counted);
    commands.push_back(fmt::format(
        "ncu --csv --page raw --target-processes all --kernel-name-base demangled --kernel-name "
        "'regex:{}' --launch-skip {} --launch-count {} --metrics {} {} > ncu{}.csv",
        pattern.regex(), skipped, launches_to_measure(kernel, counted), ncu_metrics(),
        core::shell_words(words), number));
  }
  return commands;
}

}  // namespace sidestream::advice
