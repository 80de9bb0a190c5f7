#include "launch/options/bench_step_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "launch/options/command_options.hpp"
#include "launch/options/config_file.hpp"
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

std::vector<std::string> train_arguments(const std::vector<Given>& given) {
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
  return words;
}

// Of a file nothing is dropped in silence that changes what a step is.
void refuse_target_of_file(const std::vector<Given>& given) {
  for (const Given& one : given) {
    if (one.name == "config" &&
        names(read_config_file(one.value, train_flags()), "target-val-loss"))
      throw core::ConfigError(
          fmt::format("--config {}: it sets target-val-loss, and `bench step` evaluates nothing: "
                      "give it a file without",
                      one.value));
  }
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
  refuse_target_of_file(given);
  StepBenchOptions options;
  apply(own_table(), given, options);
  options.keeps_run = names(given, "run-dir");
  options.train = parse_train_options(train_arguments(given));
  if (options.warm_up >= options.train.steps)
    throw core::ConfigError(fmt::format("--warm-up: expected less than the {} of --steps, found {}",
                                        options.train.steps, options.warm_up));
  return options;
}

}  // namespace sidestream::launch
