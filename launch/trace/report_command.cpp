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
#include "profiling/report/text_report.hpp"

namespace sidestream::launch {

int run_report(const ReportOptions& options) {
  constexpr std::size_t kWidthColumns = 100;
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
  const std::string text = report::text_report(analysis, metrics, style) + "\n" +
                           advice::advice_text(advised.advice, style);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace sidestream::launch
