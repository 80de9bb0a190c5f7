#include "launch/options/bench_step_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.hpp"
#include "launch/options/command_options.hpp"
#include "launch/options/config_file.hpp"
#include "launch/options/single_run_settings.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

using Options = StepBenchOptions;

struct TrainFlag {
  const char* name;
  const char* value;
};

// What the measurement is of, unless something else is asked for.
constexpr std::array kUnlessGiven = {TrainFlag{"data", "synthetic"}, TrainFlag{"steps", "30"}};
constexpr TrainFlag kModel = {"model", "gpt2-mini"};  // a configuration file names its own

// Every step is measured, and nothing but steps.
constexpr std::array kFixed = {TrainFlag{"log-every", "1"}, TrainFlag{"eval-every", "0"},
                               TrainFlag{"checkpoint-every", "0"}, TrainFlag{"resume", "none"}};
constexpr std::array kWithoutUse = {"print-config", "dry-run", "target-val-loss"};

SettingTable<Options> own_table() {
  return {{"bench step, beside every flag of `train` (`sidestream help train`)",
           {count<Options>({"warm-up", "N", "steps at the start that do not count"},
                           [](auto& o) -> auto& { return o.warm_up; }, {0, 1 << 20})}}};
}

bool names(const std::vector<Given>& given, const char* name) {
  return std::any_of(given.begin(), given.end(),
                     [&](const Given& one) { return one.name == name; });
}

bool is_own(const std::string& name) {
  const std::vector<std::string> own = names_of({step_bench_flags()});
  return std::find(own.begin(), own.end(), name) != own.end();
}

std::string flag_text(const std::string& name, const std::string& value) {
  return fmt::format("--{}={}", name, value);
}

bool is_fixed(std::string_view name) {
  return std::any_of(kFixed.begin(), kFixed.end(),
                     [&](const TrainFlag& flag) { return flag.name == name; });
}

// Empty without one.
std::vector<Given> given_in_file_of(const std::vector<Given>& given) {
  const auto config = std::find_if(given.begin(), given.end(),
                                   [](const Given& one) { return one.name == "config"; });
  return config == given.end() ? std::vector<Given>()
                               : read_config_file(config->value, train_flags());
}

struct LineOfSingleRun {
  const SingleRunSetting* setting;
  const Given* line;
};

// Those that the command line does not overrule.
std::vector<LineOfSingleRun> lines_of_single_runs(const std::vector<Given>& given,
                                                  const std::vector<Given>& of_file) {
  std::vector<LineOfSingleRun> lines;
  for (const SingleRunSetting& one : single_run_settings()) {
    const Given* line = line_of_single_run(of_file, one);
    if (line != nullptr && !names(given, std::string(one.name).c_str()))
      lines.push_back({.setting = &one, .line = line});
  }
  return lines;
}

std::vector<std::string> train_arguments(const std::vector<Given>& given,
                                         const std::vector<Given>& of_file) {
  std::vector<std::string> words;
  for (const Given& one : given) {
    if (!is_own(one.name)) words.push_back(flag_text(one.name, one.value));
  }
  const auto add_unless_given = [&](const TrainFlag& flag) {
    if (!names(given, flag.name)) words.push_back(flag_text(flag.name, flag.value));
  };
  for (const TrainFlag& flag : kUnlessGiven) add_unless_given(flag);
  if (!names(given, "config")) add_unless_given(kModel);
  for (const TrainFlag& flag : kFixed) words.push_back(flag_text(flag.name, flag.value));
  for (const auto& [setting, line] : lines_of_single_runs(given, of_file)) {
    if (!is_fixed(setting->name))
      words.push_back(flag_text(std::string(setting->name), std::string(setting->off)));
  }
  return words;
}

// Of a file nothing is dropped in silence that changes what a step is.
std::vector<std::string> judge_file(const std::vector<Given>& given,
                                    const std::vector<Given>& of_file) {
  for (const Given& one : of_file) {
    if (one.name == "target-val-loss")
      throw core::ConfigError(
          fmt::format("{}: `bench step` evaluates nothing: give it a file without", one.origin));
  }
  std::vector<std::string> remarks;
  for (const auto& [setting, line] : lines_of_single_runs(given, of_file)) {
    const std::string remedy =
        setting->asked.empty() ? "" : fmt::format("{} beside --config does it", setting->asked);
    if (setting->is_refused()) refuse_line(*line, *setting, remedy);
    remarks.push_back(not_taken_over(*line, *setting, "", remedy));
  }
  return remarks;
}

void refuse_what_is_fixed(const std::vector<Given>& given) {
  const auto refuse = [&](const char* name) {
    if (names(given, name))
      throw core::ConfigError(fmt::format(
          "--{}: `bench step` sets it itself, or has no use for it: leave it out", name));
  };
  for (const TrainFlag& flag : kFixed) refuse(flag.name);
  for (const char* name : kWithoutUse) refuse(name);
}

}  // namespace

FlagGroup step_bench_flags() { return flags_of(own_table()).front(); }

StepBenchOptions parse_step_bench_options(const std::vector<std::string>& arguments) {
  std::vector<FlagGroup> groups = train_flags();
  groups.push_back(step_bench_flags());
  const std::vector<Given> given = parse_command_line(arguments, groups, {.command = "bench step"});
  refuse_what_is_fixed(given);
  const std::vector<Given> of_file = given_in_file_of(given);
  StepBenchOptions options;
  options.remarks = judge_file(given, of_file);
  apply(own_table(), given, options);
  options.keeps_run = names(given, "run-dir");
  options.train = parse_train_options(train_arguments(given, of_file));
  if (options.warm_up >= options.train.steps)
    throw core::ConfigError(fmt::format("--warm-up: expected less than the {} of --steps, found {}",
                                        options.train.steps, options.warm_up));
  return options;
}

}  // namespace sidestream::launch
