#include <fmt/format.h>

#include <cstdio>

#include "core/base/file.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/trace/counter_commands.hpp"
#include "launch/trace/examined_run.hpp"
#include "launch/trace/ncu_counters.hpp"
#include "launch/trace/output_check.hpp"
#include "launch/trace/pages.hpp"
#include "launch/trace/profiled_sides.hpp"
#include "launch/trace/roofline_text.hpp"
#include "launch/trace/trace_commands.hpp"
#include "profiling/report/json_report.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::launch {
namespace {

// The commands stay whole, to be copied.
std::string ncu_text(const std::vector<std::string>& commands, const ExaminedRun& run,
                     std::size_t width) {
  if (!run.facts().on_device)
    return report::wrapped("Counters: of kernels on a GPU only; these are host ranks", width, 2);
  if (commands.empty()) return "";
  std::string text = report::wrapped(
      "Counters of these kernels, one rank and one kernel at a time; then --ncu ncu*.csv:", width,
      2);
  for (const std::string& command : commands) text += command + "\n";
  return text;
}

}  // namespace

int run_roofline(const RooflineOptions& options) {
  std::vector<std::filesystem::path> read = options.inputs;
  read.insert(read.end(), options.ncu.begin(), options.ncu.end());
  check_outputs({options.json, options.html}, read);
  ExaminedRun run(options.inputs, {.threads = options.threads});
  const auto counters = read_counters(options.ncu, run.analysis());
  run.take_counters(counters);
  const auto points =
      longest_operations(run, counters, static_cast<std::size_t>(options.operations));
  if (!options.json.empty()) core::write_file_atomically(options.json, run.report_text(counters));
  const std::vector<std::string> commands =
      counter_commands(report::top_operations_json(run.analysis()),
                       static_cast<std::size_t>(options.operations), run.analysis(), run.facts());
  if (!options.html.empty())
    write_roofline_page(options.html, folder_name(options.inputs.front()), run, counters, commands);
  const Terminal terminal = detect_terminal(1);
  const std::size_t width = terminal.text_width_columns();
  const report::TextStyle style{.width_columns = width, .color = terminal.color};
  const std::string text = report::text_of(roofline_table(points), style) + "\n" +
                           causes_text(points, width) + "\n" +
                           roofs_text(run.facts().ceilings, width) + ncu_text(commands, run, width);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace sidestream::launch
