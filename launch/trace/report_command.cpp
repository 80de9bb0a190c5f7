#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "core/base/file.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/trace/advised_report.hpp"
#include "launch/trace/nsys_export.hpp"
#include "launch/trace/pages.hpp"
#include "launch/trace/trace_commands.hpp"
#include "profiling/analysis/analysis.hpp"
#include "profiling/report/csv_report.hpp"
#include "profiling/report/tables.hpp"
#include "profiling/report/text_report.hpp"

namespace sidestream::launch {

namespace {

constexpr std::size_t kWidthColumns = 100;

// Before the files are read: a wrong name should not cost a minute.
std::vector<report::TableSource> wanted_tables(const ReportOptions& options) {
  if (options.tables == std::vector<std::string>{"all"}) return report::all_tables();
  std::vector<report::TableSource> tables;
  for (const std::string& name : options.tables) tables.push_back(report::table_named(name));
  return tables;
}

std::string text_of_tables(const analysis::Analysis& analysis,
                           const std::vector<report::TableSource>& tables, std::size_t rows,
                           const report::TextStyle& style) {
  const analysis::Details details = analysis::look_closer(analysis);
  std::string text;
  for (const report::TableSource& one : tables) {
    const report::Table table = report::readable(one.make({analysis, details}), rows);
    text += (text.empty() ? "" : "\n") + report::text_of(table, style);
  }
  return text;
}

}  // namespace

int run_report(const ReportOptions& options) {
  const std::vector<report::TableSource> tables = wanted_tables(options);
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = options.threads.value_or(processors);
  const NsysExports exports(trace::find_traces(options.inputs));
  trace::TraceSet set = trace::load_traces(exports.files(), {.threads = threads});
  const analysis::Analysis analysis = analysis::analyse(set, threads);
  const report::RunMetrics metrics = report::read_run_metrics(options.inputs);
  const AdvisedReport advised = advised_report(options.inputs, analysis, metrics);
  if (!options.json.empty()) core::write_file_atomically(options.json, advised.text());
  if (!options.html.empty()) write_report_page(options.html, options.inputs, analysis, advised);
  if (!options.csv.empty()) report::write_csv_folder(analysis, options.csv);
  if (options.quiet) return 0;
  const Terminal terminal = detect_terminal(1);
  const report::TextStyle style{.width_columns = kWidthColumns, .color = terminal.color};
  const std::string text =
      tables.empty()
          ? report::text_report(analysis, metrics, style) + "\n" +
                advice::advice_text(advised.advice, style)
          : text_of_tables(analysis, tables, static_cast<std::size_t>(options.rows), style);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace sidestream::launch
