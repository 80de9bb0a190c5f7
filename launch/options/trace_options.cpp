#include "launch/options/trace_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "launch/options/command_options.hpp"
#include "launch/options/compare_options.hpp"
#include "launch/options/nearest_name.hpp"
#include "launch/options/roofline_options.hpp"

namespace sidestream::launch {
namespace {

constexpr const char* kProgram = "sidestream-trace";
constexpr IntegerRange kThreads = {1, 4096};
constexpr IntegerRange kRows = {1, 1'000'000'000};
const Flag kInput = {"input", "PATH...",
                     "traces, or folders with traces; the words alone are enough"};

std::int64_t whole_number(std::string_view text, const std::string& all) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size() || value < 0)
    throw core::ConfigError("expected numbers such as 3 or 2:5, found '" + all + "'");
  return value;
}

StepRange parse_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::int64_t first = whole_number(std::string_view(text).substr(0, colon), text);
  if (colon == std::string::npos) return {first, first};
  const std::int64_t last = whole_number(std::string_view(text).substr(colon + 1), text);
  if (last < first) throw core::ConfigError("expected a range that rises, found '" + text + "'");
  return {first, last};
}

// "40", "12:40" or "10:20:40": what stands before the last colon is a step or a range of steps.
void parse_mfu_gate(const std::string& text, ReportOptions& options) {
  const std::size_t colon = text.rfind(':');
  const std::string percent = colon == std::string::npos ? text : text.substr(colon + 1);
  char* end = nullptr;
  const double value = std::strtod(percent.c_str(), &end);
  if (percent.empty() || *end != 0 || !(value >= 0 && value <= 100))
    throw core::ConfigError("expected a percentage from 0 to 100, such as 40 or 10:20:40, found '" +
                            text + "'");
  options.require_mfu_pct = value;
  if (colon != std::string::npos) options.require_mfu_steps = parse_range(text.substr(0, colon));
}

std::vector<std::string> parse_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma == at) throw core::ConfigError("expected names, found '" + text + "'");
    names.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

// "0,2,4:6"
std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const StepRange range = parse_range(text.substr(at, comma - at));
    constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;
    if (range.last >= kMostRanks)
      throw core::ConfigError("expected ranks below " + std::to_string(kMostRanks) + ", found '" +
                              text + "'");
    for (std::int64_t rank = range.first; rank <= range.last; ++rank)
      ranks.push_back(static_cast<int>(rank));
    at = comma + 1;
  }
  return ranks;
}

SettingTable<ReportOptions> report_table() {
  using Options = ReportOptions;
  return {{"What a run did with its time",
           {words<Options>(
                kInput, [](auto& o) -> auto& { return o.inputs; }),
            text<Options>(
                {"json", "FILE", "write everything as JSON too", "not written"},
                [](auto& o) -> auto& { return o.json; }),
            text<Options>(
                {"html", "FILE", "write a page for the browser too, one file", "not written"},
                [](auto& o) -> auto& { return o.html; }),
            text<Options>(
                {"csv", "FOLDER", "write every table as a CSV file too", "not written"},
                [](auto& o) -> auto& { return o.csv; }),
            words<Options>(
                {"ncu", "FILE...", "counters of Nsight Compute as CSV, for JSON and page", "none"},
                [](auto& o) -> auto& { return o.ncu; }),
            {{"tables", "NAME,NAME", "print these tables instead of the report; all: every one",
              "the report"},
             [](Options& o, const std::string& value) { o.tables = parse_names(value); },
             [](const Options&) -> std::optional<std::string> { return std::nullopt; }},
            optional_count<Options>(
                {"rows", "N", "of each of these tables", std::to_string(kTableRows)},
                [](auto& o) -> auto& { return o.rows; }, kRows),
            {{"require-mfu", "[RANGE:]PERCENT",
              "exit code 11 when the model FLOPs utilisation is below this, 12 when it is not "
              "known; RANGE are logged steps, such as 10:20:40",
              "no gate"},
             [](Options& o, const std::string& value) { parse_mfu_gate(value, o); },
             [](const Options&) -> std::optional<std::string> { return std::nullopt; }},
            on_off<Options>(
                {.name = "quiet",
                 .value_name = "",
                 .help = "no text on the terminal",
                 .default_text = "off",
                 .kind = FlagKind::kSwitch},
                [](auto& o) -> auto& { return o.quiet; }),
            optional_count<Options>(
                {"threads", "N", "files read at once", "every core"},
                [](auto& o) -> auto& { return o.threads; }, kThreads)}}};
}

SettingTable<MergeOptions> merge_table() {
  using Options = MergeOptions;
  return {{"All ranks in one file",
           {words<Options>(
                kInput, [](auto& o) -> auto& { return o.inputs; }),
            text<Options>(
                {"output", "FILE", "the merged trace, gzip when the name ends in .gz; also -o",
                 "must be given"},
                [](auto& o) -> auto& { return o.output; }),
            {{"ranks", "N,N:M", "only these ranks, such as 0,2 or 4:7", "all"},
             [](Options& o, const std::string& value) { o.ranks = parse_ranks(value); },
             [](const Options&) -> std::optional<std::string> { return std::nullopt; }},
            {{"steps", "N:M", "only these steps, such as 12 or 12:14", "all"},
             [](Options& o, const std::string& value) { o.steps = parse_range(value); },
             [](const Options&) -> std::optional<std::string> { return std::nullopt; }},
            optional_count<Options>(
                {"threads", "N", "files read at once", "every core"},
                [](auto& o) -> auto& { return o.threads; }, kThreads)}}};
}

std::string report_help(int width) {
  return "Says where every nanosecond of each step went, who waited for whom, and what bounds the "
         "run.\n\n"
         "  sidestream-trace report runs/a\n"
         "  sidestream-trace report runs/a --html report.html\n"
         "  sidestream-trace report a/*.pt.trace.json.gz --json report.json --csv tables\n"
         "  sidestream-trace report runs/a --tables operators,memory_peaks --rows 50\n"
         "  sidestream-trace report runs/a --quiet --require-mfu 40\n"
         "  sidestream-trace report profile.sqlite      (nsys export -t sqlite --lazy=false "
         "profile.nsys-rep)\n\n"
         "Reads Kineto traces of PyTorch and of Sidestream (.json, .json.gz) and SQLite exports of "
         "Nsight Systems.\n"
         "compute + exposed communication + exposed copies + idle = step, to the nanosecond.\n\n"
         "MFU is (6 N + 6 L C T) tokens/s over the peak of the machine: of metrics.jsonl, or of\n"
         "the steps of a trace that Sidestream wrote. Exit code 11: below --require-mfu; 12: not "
         "known.\n\n" +
         flags_help(flags_of(report_table()), width);
}

std::string merge_help(int width) {
  return "Puts the traces of all ranks on one clock and into one file for Perfetto or "
         "chrome://tracing.\n\n"
         "  sidestream-trace merge runs/a -o merged.json.gz\n"
         "  sidestream-trace merge runs/a -o merged.json.gz --ranks 0,3 --steps 12:14\n\n" +
         flags_help(flags_of(merge_table()), width);
}

struct Entry {
  const char* name;
  TraceCommand command;
  const char* summary;
  std::string (*help)(int);
};

constexpr std::array<Entry, 4> kCommands = {
    {{"report", TraceCommand::kReport, "where the time of each step went", report_help},
     {"merge", TraceCommand::kMerge, "all ranks in one file, on one clock", merge_help},
     {"compare", TraceCommand::kCompare, "two runs side by side", compare_help},
     {"roofline", TraceCommand::kRoofline, "the longest operations against the machine",
      roofline_help}}};

std::string top_help() {
  std::string text =
      "Sidestream's timeline analyser: reads the traces of all ranks and explains them.\n\n"
      "  sidestream-trace report runs/a\n"
      "  sidestream-trace merge  runs/a -o merged.json.gz\n\nCommands (`sidestream-trace help "
      "COMMAND` explains one):\n";
  for (const Entry& entry : kCommands)
    text += "  " + std::string(entry.name) + std::string(10 - std::string(entry.name).size(), ' ') +
            entry.summary + "\n";
  return text +
         "\n  --help     this text\n  --version  version of this program\n\n"
         "Exit codes: 0 done, 2 flags, 3 a trace that cannot be used, 8 out of memory, 1 anything "
         "else.\nGates: 10 slower, 11 below the MFU that is required, 12 cannot be judged, 13 "
         "learns "
         "worse.\n";
}

const Entry& entry_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& entry : kCommands) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  throw core::ConfigError("unknown command '" + name + "'." + did_you_mean(name, names) +
                          " See `sidestream-trace --help`");
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

TraceInvocation printing(std::string text) {
  return {.action = TraceInvocation::Action::kPrintText, .text = std::move(text)};
}

template <typename Options>
Options parse(std::vector<std::string> arguments, const SettingTable<Options>& table,
              const char* command) {
  for (std::string& word : arguments) {
    if (word == "-o") word = "--output";
  }
  Options options = parse_command(arguments, table,
                                  {.command = command, .positional = "input", .program = kProgram});
  if (options.inputs.empty())
    throw core::ConfigError(
        "no trace given: name files or a run directory; see `sidestream-trace " +
        std::string(command) + " --help`");
  return options;
}

}  // namespace

TraceInvocation parse_trace_invocation(int argc, const char* const* argv,
                                       const std::string& version_text) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) throw core::ConfigError("no command given.\n\n" + top_help());
  const std::string first = words.front();
  words.erase(words.begin());
  if (first == "--version") {
    if (!words.empty())
      throw core::ConfigError("--version takes no arguments, found " + words.front());
    return printing(version_text);
  }
  if (asks_for_help(first)) return printing(top_help());
  if (first == "help")
    return printing(words.empty() ? top_help()
                                  : entry_named(words.front()).help(help_width_columns()));
  const Entry& entry = entry_named(first);
  if (std::any_of(words.begin(), words.end(), asks_for_help))
    return printing(entry.help(help_width_columns()));
  return {.command = entry.command, .arguments = std::move(words)};
}

ReportOptions parse_report_options(const std::vector<std::string>& arguments) {
  ReportOptions options = parse(arguments, report_table(), "report");
  if (options.rows && options.tables.empty())
    throw core::ConfigError("--rows is of the tables that --tables prints: name some, or all");
  return options;
}

MergeOptions parse_merge_options(const std::vector<std::string>& arguments) {
  MergeOptions options = parse(arguments, merge_table(), "merge");
  if (options.output.empty())
    throw core::ConfigError("--output is missing: give a file such as merged.json.gz");
  return options;
}

}  // namespace sidestream::launch
