#include <fmt/format.h>

#include <cstdio>

#include "core/base/file.hpp"
#include "core/base/standard_output.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/trace/examined_run.hpp"
#include "launch/trace/ncu_counters.hpp"
#include "launch/trace/output_check.hpp"
#include "launch/trace/pages.hpp"
#include "launch/trace/profiled_sides.hpp"
#include "launch/trace/roofline_text.hpp"
#include "launch/trace/trace_commands.hpp"
#include "profiling/report/csv_report.hpp"
#include "profiling/report/summary.hpp"
#include "profiling/report/tables.hpp"
#include "profiling/report/text_report.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::launch {

namespace {

constexpr std::size_t kTop = 5;  // operations

// Before the files are read: a wrong name should not cost a minute.
std::vector<report::TableSource> wanted_tables(const ReportOptions& options) {
  if (options.tables == std::vector<std::string>{"all"}) return report::all_tables();
  std::vector<report::TableSource> tables;
  for (const std::string& name : options.tables) tables.push_back(report::table_named(name));
  return tables;
}

std::string text_of_tables(const report::Findings& findings,
                           const std::vector<report::TableSource>& tables, std::size_t rows,
                           const report::TextStyle& style) {
  std::string text;
  for (const report::TableSource& one : tables) {
    const report::Table table = report::readable(one.make(findings), rows);
    for (const report::Table& part : report::parts_of(table, style.width_columns))
      text += (text.empty() ? "" : "\n") + report::text_of(part, style);
  }
  return text;
}

// Of the steps that the gate is about; nothing when it is not known of any.
std::optional<double> mfu_of(const ExaminedRun& run, const std::optional<StepRange>& steps) {
  if (!steps) return report::throughput_of(run.analysis(), run.metrics()).mfu;
  std::vector<double> values;
  for (const auto& [step, mfu] : run.metrics().mfu_of_steps) {
    if (step >= steps->first && step <= steps->last) values.push_back(mfu);
  }
  if (values.empty()) return std::nullopt;
  return verify::median_of(std::move(values));
}

// Why there is nothing to judge.
std::string unknown_mfu(const ExaminedRun& run, const std::optional<StepRange>& steps) {
  const auto& known = run.metrics().mfu_of_steps;
  if (steps && !known.empty())
    return fmt::format(
        "metrics.jsonl has no MFU of a step from {} to {}: it has them from step {} to {}",
        steps->first, steps->last, known.begin()->first, known.rbegin()->first);
  return "MFU is not known: it needs a run directory with MFU in metrics.jsonl; measure the "
         "machine with `sidestream bench ceilings` before the run";
}

// Says why a gate is not passed, also when nothing else is said.
int check_mfu(const ExaminedRun& run, const ReportOptions& options) {
  if (!options.require_mfu_pct) return static_cast<int>(verify::GateCode::kPassed);
  const std::optional<double> mfu = mfu_of(run, options.require_mfu_steps);
  if (!mfu) {
    core::print_remark(fmt::format("sidestream-trace: --require-mfu {:g}: {}\n",
                                   *options.require_mfu_pct,
                                   unknown_mfu(run, options.require_mfu_steps)));
    return static_cast<int>(verify::GateCode::kCannotJudge);
  }
  if (*mfu > 1) {
    core::print_remark(fmt::format(
        "sidestream-trace: --require-mfu {:g}: an MFU of {:.4g} % cannot be: the ceilings are "
        "too low, as of a machine that was busy; `sidestream bench ceilings` on a quiet one "
        "before the run\n",
        *options.require_mfu_pct, *mfu * 100));
    return static_cast<int>(verify::GateCode::kCannotJudge);
  }
  if (*mfu * 100 >= *options.require_mfu_pct) return static_cast<int>(verify::GateCode::kPassed);
  core::print_remark(
      fmt::format("sidestream-trace: MFU is {:.4g} %, --require-mfu asks for {:g} %\n", *mfu * 100,
                  *options.require_mfu_pct));
  return static_cast<int>(verify::GateCode::kBelowTarget);
}

void check_files(const ReportOptions& options) {
  std::vector<std::filesystem::path> outputs = {options.json, options.html};
  if (!options.csv.empty()) {
    for (auto& file : report::csv_files_in(options.csv)) outputs.push_back(std::move(file));
  }
  std::vector<std::filesystem::path> inputs = options.inputs;
  inputs.insert(inputs.end(), options.ncu.begin(), options.ncu.end());
  check_outputs(outputs, inputs);
}

}  // namespace

int run_report(const ReportOptions& options) {
  const std::vector<report::TableSource> tables = wanted_tables(options);
  check_files(options);
  ExaminedRun run(options.inputs, {.threads = options.threads});
  const advice::NcuByKernel counters = read_counters(options.ncu, run.analysis());
  run.take_counters(counters);
  if (!options.json.empty()) core::write_file_atomically(options.json, run.report_text(counters));
  if (!options.html.empty())
    write_report_page(options.html, folder_name(options.inputs.front()), run, counters);
  if (!options.csv.empty()) report::write_csv_folder(run.findings(), options.csv);
  if (options.quiet) return check_mfu(run, options);
  const Terminal terminal = detect_terminal(1);
  const report::TextStyle style{.width_columns = terminal.text_width_columns(),
                                .color = terminal.color};
  const std::string text =
      tables.empty()
          ? report::text_report(run.analysis(), run.metrics(), style) + "\n" +
                short_causes_text(longest_operations(run, counters, kTop), style.width_columns) +
                "\n" +
                advice::advice_text(run.advice(), style,
                                    report::missing_figures(run.analysis(), run.metrics()))
          : text_of_tables(run.findings(), tables,
                           static_cast<std::size_t>(options.rows.value_or(kTableRows)), style);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  return check_mfu(run, options);
}

}  // namespace sidestream::launch
