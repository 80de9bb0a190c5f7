#include "launch/options/verify_options.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/program_options/parsers.hpp>

#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

using Options = VerifyOptions;
constexpr std::array kWithFlags = {"--base", "--new", "--common"};
// What verify sets itself, for each run.
struct OwnFlag {
  const char* name;
  const char* instead;
};
constexpr std::array kOwnFlags = {
    OwnFlag{"--config", "give it to verify itself, for both sides"},
    OwnFlag{"--run-dir", "--out names the folder that holds all runs"},
    OwnFlag{"--steps", "give it to verify itself, for both sides"},
    OwnFlag{"--seed", "give it to verify itself, for the first block"},
    OwnFlag{"--resume", "every run starts from the beginning"},
    OwnFlag{"--log-every", "every step is logged, leave it"},
    OwnFlag{"--eval-every", "each run is evaluated at its end, leave it"},
    OwnFlag{"--checkpoint-every", "no run saves, leave it"},
    OwnFlag{"--profile", "a profiled run of each side follows the timed ones, leave it"},
    OwnFlag{"--dry-run", "give it to verify itself"},
    OwnFlag{"--print-config", "leave it"}};

// split_unix takes a quote that is never closed as if it were.
void check_quotes(const std::string& text) {
  char open = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '\\') {
      ++at;
    } else if (open == 0 && (letter == '\'' || letter == '"')) {
      open = letter;
    } else if (letter == open) {
      open = 0;
    }
  }
  if (open != 0)
    throw core::ConfigError(
        fmt::format("expected flags with closed quotes, found an open {} in: {}", open, text));
}

std::vector<std::string> flags_in(const std::string& text) {
  check_quotes(text);
  const std::vector<std::string> words = boost::program_options::split_unix(text);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    for (const auto& [flag, instead] : kOwnFlags) {
      if (name == flag)
        throw core::ConfigError(fmt::format("{} is set by verify: {}", flag, instead));
    }
  }
  return words;
}

template <typename Access>
Setting<Options> train_flags_of(Flag flag, Access access) {
  return {std::move(flag),
          [=](Options& options, const std::string& text) { access(options) = flags_in(text); },
          [](const Options&) { return std::nullopt; }};
}

SettingGroup<Options> runs_group() {
  return {"The two sides",
          {text<Options>(
               {"config", "FILE",
                "configuration of both sides, without its resume, record and sample-hz",
                "must be given"},
               [](auto& o) -> auto& { return o.config; }),
           train_flags_of(
               {"base", "FLAGS", "flags of `train` for the base, in quotes", "none"},
               [](auto& o) -> auto& { return o.base; }),
           train_flags_of(
               {"new", "FLAGS", "flags of `train` for the new side, in quotes", "none"},
               [](auto& o) -> auto& { return o.fresh; }),
           train_flags_of(
               {"common", "FLAGS", "flags of `train` for both sides, in quotes", "none"},
               [](auto& o) -> auto& { return o.common; }),
           count<Options>({"np", "N", "ranks of each run"},
                          [](auto& o) -> auto& { return o.ranks; }, {1, 1 << 20}),
           text<Options>(
               {"hosts", "LIST", "hosts for mpirun, such as a:8,b:8", "this machine"},
               [](auto& o) -> auto& { return o.hosts; }),
           on_off<Options>(
               switch_named("force", "compare although model, data, batch or ranks differ"),
               [](auto& o) -> auto& { return o.force; })}};
}

SettingGroup<Options> measuring_group() {
  return {"How it is measured",
          {count<Options>({"blocks", "K", "pairs of runs, base and new in turns"},
                          [](auto& o) -> auto& { return o.blocks; }, {1, 1000}),
           count<Options>({"steps", "N", "steps of each run"},
                          [](auto& o) -> auto& { return o.steps; }, {1}),
           count<Options>({"warm-up", "N", "steps at the start of each run that do not count"},
                          [](auto& o) -> auto& { return o.warm_up; }, {0, 1 << 20}),
           count<Options>({"seed", "N", "seed of the first block; each block has the next one"},
                          [](auto& o) -> auto& { return o.seed; }, {0}),
           on_off<Options>(
               {"profile", "on|off",
                "after the timed runs one profiled run of each side: timeline, longest "
                "operations, advice, and what the change is made of"},
               [](auto& o) -> auto& { return o.profile; }),
           on_off<Options>(
               {"prove", "on|off",
                "when the first advice for the base is that it waits for input: a few more runs of "
                "it, with --fix-batch on in turns, which prove or refute that"},
               [](auto& o) -> auto& { return o.prove; })}};
}

SettingGroup<Options> outcome_group() {
  return {
      "What becomes of it",
      {text<Options>(
           {"out", "FOLDER",
            "runs, report.html, report.json, report.md, report.txt; verification.json, by which "
            "the same command goes on",
            "runs/verify_ and a number, the same for the same command"},
           [](auto& o) -> auto& { return o.output; }),
       text<Options>(
           {"log", "FILE", "decision log that this decision is added to", "OUT/../decisions.jsonl"},
           [](auto& o) -> auto& { return o.log; }),
       number<Options>(
           {"fail-if-slower", "PCT",
            "exit code 10 when the new side is shown to be slower by more than this, 12 when "
            "that cannot be excluded",
            "no gate"},
           [](auto& o) -> auto& { return o.fail_if_slower_pct; }, {.min = 0, .max = 1000}),
       on_off<Options>(
           switch_named("dry-run", "print the commands of all runs, and about how long they take"),
           [](auto& o) -> auto& { return o.dry_run; })}};
}

SettingTable<Options> table() { return {runs_group(), measuring_group(), outcome_group()}; }

// Flags in quotes may be empty or start with dashes: they are tied to their name, and a blank keeps
// an empty one a value.
std::vector<std::string> tied(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool takes_flags =
        std::find(kWithFlags.begin(), kWithFlags.end(), word) != kWithFlags.end();
    if (takes_flags && i + 1 < arguments.size()) {
      result.push_back(word + "= " + arguments[++i]);
    } else {
      result.push_back(word == "-np" ? "--np" : word);
    }
  }
  return result;
}

}  // namespace

VerifyOptions parse_verify_options(const std::vector<std::string>& arguments) {
  VerifyOptions options = parse_command(tied(arguments), table(), {.command = "verify"});
  if (options.config.empty()) throw core::ConfigError("--config is missing: give a file");
  if (options.warm_up >= options.steps)
    throw core::ConfigError(fmt::format("--warm-up: expected less than the {} of --steps, found {}",
                                        options.steps, options.warm_up));
  return options;
}

std::string verify_help(int width_columns) {
  return "Measures whether a change makes training faster, and whether it learns the same: runs "
         "base and new in turns, on this machine. A profiled run of each side says where the time "
         "goes, and a page for the browser shows all of it.\n\n"
         "  sidestream verify --config train.cfg --np 2 --base \"--baseline\" --new \"\" --out "
         "report\n"
         "  sidestream verify --config train.cfg --np 2 --base \"--overlap off\" --new \"--overlap "
         "on\" --blocks 8 --out report\n\n"
         "Ctrl-C stops after a step; the same command goes on and repeats no finished run.\n"
         "Exit codes: 10 slower than --fail-if-slower allows, 12 cannot be judged, 13 learns "
         "worse. "
         "75 stopped when it was asked to; the same call goes on. When a run fails, its own: those "
         "of `train`, or 128 and the number of the signal that "
         "ended it (137: killed).\n\n" +
         flags_help(flags_of(table()), width_columns);
}

}  // namespace sidestream::launch
