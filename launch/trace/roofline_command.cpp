#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/base/file.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/trace/counter_commands.hpp"
#include "launch/trace/examined_run.hpp"
#include "launch/trace/ncu_counters.hpp"
#include "launch/trace/output_check.hpp"
#include "launch/trace/pages.hpp"
#include "launch/trace/profiled_sides.hpp"
#include "launch/trace/trace_commands.hpp"
#include "profiling/advice/roofline.hpp"
#include "profiling/report/json_report.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::launch {
namespace {

constexpr std::size_t kWidth = 100;

std::string or_dash(const std::optional<double>& value, double unit, const char* text) {
  return value ? fmt::format("{:.4g} {}", *value / unit, text) : "-";
}

// Of operators whose result is not known the inputs alone.
std::string bandwidth_text(const advice::RooflinePoint& one) {
  const std::string text = or_dash(one.bytes_per_s, 1e9, "");
  return one.bytes_per_s && one.bytes_at_least ? "at least " + text : text;
}

report::Table table_of(const std::vector<advice::RooflinePoint>& points) {
  report::Table table{.title = "Longest operations",
                      .header = {"name", "time", "of step", "calls", "type", "GFLOP/s", "GB/s",
                                 "bound", "of the roof"},
                      .rows = {}};
  for (const advice::RooflinePoint& one : points)
    table.rows.push_back({one.name, report::duration_text(one.total_ns),
                          one.step_share ? report::percent_text(*one.step_share) : "-",
                          std::to_string(one.calls), one.dtype.empty() ? "-" : one.dtype,
                          or_dash(one.flops_per_s, 1e9, ""), bandwidth_text(one),
                          one.bound.empty() ? "-" : one.bound,
                          one.share_of_roof ? report::percent_text(*one.share_of_roof) : "-"});
  return table;
}

void add(std::string& text, const char* name, const std::optional<double>& value,
         const char* unit) {
  text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                      value ? fmt::format("{:.4g}{}", *value, unit) : "not measured");
}

std::string counters_text(const advice::NcuCounters& counters) {
  std::string text;
  add(text, "SM", counters.compute_percent, " %");
  add(text, "DRAM", counters.memory_percent, " %");
  add(text, "Tensor pipes", counters.tensor_percent, " %");
  add(text, "occupancy", counters.occupancy_percent, " %");
  add(text, "L2 hits", counters.l2_hit_percent, " %");
  add(text, "sectors a request", counters.sectors_per_request, "");
  add(text, "bank conflicts", counters.bank_conflicts, "");
  if (!counters.occupancy_limiter.empty()) text += ", limited by " + counters.occupancy_limiter;
  if (!counters.top_stall.empty()) text += ", top stall " + counters.top_stall;
  return text;
}

std::string unknown_cause(const advice::RooflinePoint& one) {
  if (one.flops_per_s || one.bytes_per_s)
    return "not known: nobody measured what this machine reaches. `sidestream bench ceilings` does";
  return "not known: the trace has neither FLOPs nor bytes of it";
}

std::string causes_text(const std::vector<advice::RooflinePoint>& points) {
  std::string text;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const advice::RooflinePoint& one = points[i];
    const std::string cause = one.cause.empty() ? unknown_cause(one) : one.cause;
    text += report::wrapped(fmt::format("{}. {}", i + 1, cause), kWidth, 3);
    if (one.counters)
      text += report::wrapped(fmt::format("   ncu, {} launches: {}", one.counters->launches,
                                          counters_text(*one.counters)),
                              kWidth, 6);
  }
  return text;
}

void add_roof(std::string& text, const advice::Ceilings& ceilings, const std::string& name,
              const std::string& figure) {
  text += fmt::format("{} {}{}, ", name, figure,
                      ceilings.of_datasheet.contains(name) ? " (datasheet)" : "");
}

std::string roofs_text(const std::optional<advice::Ceilings>& ceilings) {
  if (!ceilings)
    return "Roofs: not measured; `sidestream bench ceilings` measures them on the machine of the "
           "run\n";
  std::string text = "Roofs: ";
  for (const auto& [dtype, peak] : ceilings->flops_per_s)
    add_roof(text, *ceilings, dtype, report::rate_text(peak, "FLOP/s"));
  for (const auto& [name, rate] :
       {std::pair("memory", ceilings->memory_bytes_per_s),
        std::pair("host to device", ceilings->host_to_device_bytes_per_s),
        std::pair("device to host", ceilings->device_to_host_bytes_per_s),
        std::pair("link", ceilings->link_bytes_per_s)})
    if (rate > 0) add_roof(text, *ceilings, name, report::rate_text(rate, "B/s"));
  return report::wrapped(text + ceilings->source, kWidth, 2);
}

std::string ncu_text(const std::vector<std::string>& commands, const ExaminedRun& run) {
  if (!run.facts().on_device) return "Counters: of kernels on a GPU only; these are host ranks\n";
  if (commands.empty()) return "";
  std::string text =
      "Counters of these kernels, one rank and one kernel at a time; then --ncu ncu*.csv:\n";
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
  std::vector<advice::RooflinePoint> points;
  for (const auto& operation : report::top_operations_json(run.analysis())) {
    if (points.size() == static_cast<std::size_t>(options.operations)) break;
    points.push_back(advice::place_operation(operation, run.facts(), counters));
  }
  if (!options.json.empty()) core::write_file_atomically(options.json, run.report_text(counters));
  const std::vector<std::string> commands =
      counter_commands(report::top_operations_json(run.analysis()),
                       static_cast<std::size_t>(options.operations), run.analysis(), run.facts());
  if (!options.html.empty())
    write_roofline_page(options.html, folder_name(options.inputs.front()), run, counters, commands);
  const report::TextStyle style{.width_columns = kWidth, .color = detect_terminal(1).color};
  const std::string text = report::text_of(table_of(points), style) + "\n" + causes_text(points) +
                           "\n" + roofs_text(run.facts().ceilings) + ncu_text(commands, run);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace sidestream::launch
