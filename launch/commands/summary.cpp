#include <fmt/format.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/printable.hpp"
#include "core/base/warning.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/one_process.hpp"
#include "launch/options/summary_options.hpp"
#include "launch/reporting/line_plot.hpp"
#include "launch/reporting/metrics_file.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/reporting/text_table.hpp"
#include "launch/trainer/ettr_account.hpp"
#include "launch/trainer/run_record.hpp"

namespace sidestream::launch {
namespace {

struct Run {
  std::string name;  // as a terminal may have it
  RunRecord record;
  std::vector<StepMetrics> metrics;
};

Run read_run(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw core::ConfigError(fmt::format("--run {}: expected the directory of a run, found {}",
                                        folder.string(),
                                        std::filesystem::exists(folder) ? "a file" : "none"));
  const checkpoint::RunPaths paths(folder);
  if (!core::is_there(paths.run_json()))
    throw core::ConfigError(fmt::format(
        "--run {}: expected the directory of a run, found one without run.json", folder.string()));
  return {.name = core::printable(folder.lexically_normal().filename().string()),
          .record = read_run_record(paths.run_json()),
          .metrics = read_metrics(paths.metrics())};
}

template <typename Field>
std::optional<double> measured(const Run& run, Field RunPerformance::*field) {
  if (!run.record.performance) return std::nullopt;
  return (*run.record.performance).*field;
}

// Without it a ratio of two short runs reads like a result.
std::string how_sure(const Run& base, const Run& other) {
  if (!base.record.performance || !other.record.performance) return "";
  const std::string models = base.record.parameters == other.record.parameters
                                 ? ""
                                 : fmt::format("These are other models: {} and {} parameters.\n",
                                               base.record.parameters, other.record.parameters);
  return models +
         fmt::format(
             "Medians of {} and {} steps, of runs that were not made in turns: `sidestream verify` "
             "says what is more than noise.\n",
             base.record.performance->steps, other.record.performance->steps);
}

// Parts of a step are compared where they matter: a hundredth of the base's step or more.
std::string compare(const Run& base, const Run& other) {
  const double step_ms = measured(base, &RunPerformance::step_ms_p50).value_or(0);
  const auto row = [&](const char* name, auto RunPerformance::*field, Better better) {
    return ComparisonRow{name, measured(base, field), measured(other, field), better,
                         better == Better::kLower ? step_ms / 100 : 0};
  };
  return comparison_table(
      base.name, other.name,
      {row("step time, ms (median)", &RunPerformance::step_ms_p50, Better::kLower),
       row("tokens/s", &RunPerformance::tokens_per_s, Better::kHigher),
       row("exposed communication, ms a step", &RunPerformance::exposed_comm_ms_p50,
           Better::kLower),
       row("reader cost, ms a step", &RunPerformance::reader_cost_ms_p50, Better::kLower)});
}

std::string describe(const Run& run) {
  const RunRecord& record = run.record;
  std::string text =
      fmt::format("{}: {} rank(s) x {} thread(s), {}, {}", run.name, record.world_size,
                  record.threads_per_rank, record.precision, record.backend);
  if (!record.exit_code) text += ", not finished (it still runs, or was killed)";
  if (record.exit_code.value_or(0) != 0) text += fmt::format(", exit code {}", *record.exit_code);
  if (record.last_step) text += fmt::format(", {} steps", *record.last_step);
  if (record.last_val_loss) text += fmt::format(", validation loss {:.4f}", *record.last_val_loss);
  if (record.time_to_target_s)
    text += fmt::format(", target reached after {:.1f} s", *record.time_to_target_s);
  return text + "\n";
}

// One that cannot be read is told as one whose lines cannot.
FoundAccount account_of_time(const std::filesystem::path& run) {
  try {
    return read_account(checkpoint::RunPaths(run).ettr());
  } catch (const core::Error& error) {
    return {.faults = {error.what()}};
  }
}

PlotSeries curve(const Run& run) {
  PlotSeries series{.name = run.name, .points = {}};
  for (const StepMetrics& step : run.metrics) {
    series.points.push_back({static_cast<double>(step.step), step.loss});
  }
  return series;
}

// By their paths where two folders have one name.
void tell_apart(std::vector<Run>& runs, const std::vector<std::filesystem::path>& folders) {
  std::set<std::string> names;
  for (const Run& run : runs) names.insert(run.name);
  if (names.size() == runs.size()) return;
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].name = core::printable(folders[i].string());
}

}  // namespace

int run_summary(const CommandCall& call) {
  require_one_process("summary");
  const SummaryOptions options = parse_summary_options(call.arguments);
  std::vector<Run> runs;
  for (const auto& folder : options.runs) runs.push_back(read_run(folder));
  tell_apart(runs, options.runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    fmt::print("{}", core::printable_lines(describe(runs[i])));
    if (const auto& memory = runs[i].record.memory)
      fmt::print("{}: {}\n", runs[i].name, describe(*memory));
    if (runs[i].metrics.empty())
      core::print_warning(checkpoint::RunPaths(options.runs[i]).metrics().string() +
                          " has no step");
    const FoundAccount time = account_of_time(options.runs[i]);
    for (const std::string& fault : time.faults) core::print_warning(fault);
    if (time.account) fmt::print("{}: {}\n", runs[i].name, describe(*time.account));
  }
  for (std::size_t other = 1; other < runs.size(); ++other) {
    fmt::print("\n{} against {}\n{}{}", runs[other].name, runs.front().name,
               compare(runs.front(), runs[other]), how_sure(runs.front(), runs[other]));
  }
  std::vector<PlotSeries> curves;
  for (const Run& run : runs) curves.push_back(curve(run));
  const Terminal terminal = detect_terminal(1);
  fmt::print("\n{}", line_plot(curves, {.width_columns = terminal.current_width_columns(),
                                        .utf8 = terminal.utf8,
                                        .color = terminal.color}));
  return 0;
}

}  // namespace sidestream::launch
