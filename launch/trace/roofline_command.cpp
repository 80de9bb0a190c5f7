#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/trace/examined_run.hpp"
#include "launch/trace/trace_commands.hpp"
#include "profiling/advice/roofline.hpp"
#include "profiling/report/json_report.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::launch {
namespace {

constexpr std::size_t kWidth = 100;

advice::NcuByFunction read_counters(const RooflineOptions& options,
                                    const analysis::Analysis& analysis) {
  if (options.ncu.empty()) return {};
  auto counters = advice::counters_by_function(advice::read_ncu_csv(options.ncu));
  const bool fits = std::any_of(
      analysis.operations.begin(), analysis.operations.end(),
      [&](const auto& one) { return counters.contains(advice::function_of(one.name)); });
  if (fits) return counters;
  throw core::DataError(core::FileFault{
      options.ncu.string(), std::nullopt, "counters of kernels that are in the traces",
      fmt::format("{} only: is it of another program?", counters.begin()->first)});
}

std::string or_dash(const std::optional<double>& value, double unit, const char* text) {
  return value ? fmt::format("{:.4g} {}", *value / unit, text) : "-";
}

report::Table table_of(const std::vector<advice::RooflinePoint>& points) {
  report::Table table{
      .title = "Longest operations",
      .header = {"name", "time", "share", "calls", "GFLOP/s", "GB/s", "bound", "of the roof"},
      .rows = {}};
  for (const advice::RooflinePoint& one : points)
    table.rows.push_back({one.name, report::duration_text(one.total_ns),
                          report::percent_text(one.share), std::to_string(one.calls),
                          or_dash(one.flops_per_s, 1e9, ""), or_dash(one.bytes_per_s, 1e9, ""),
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

std::string causes_text(const std::vector<advice::RooflinePoint>& points) {
  std::string text;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const advice::RooflinePoint& one = points[i];
    const std::string cause =
        one.cause.empty() ? "not known: the trace has neither FLOPs nor bytes of it" : one.cause;
    text += report::wrapped(fmt::format("{}. {}", i + 1, cause), kWidth, 3);
    if (one.counters)
      text += report::wrapped(fmt::format("   ncu, {} launches: {}", one.counters->launches,
                                          counters_text(*one.counters)),
                              kWidth, 6);
  }
  return text;
}

std::string roofs_text(const std::optional<advice::Ceilings>& ceilings) {
  if (!ceilings)
    return "Roofs: not measured; `sidestream bench ceilings` measures them on the machine of the "
           "run\n";
  std::string text = "Roofs: ";
  for (const auto& [dtype, peak] : ceilings->flops_per_s)
    text += fmt::format("{} {:.4g} GFLOP/s, ", dtype, peak * 1e-9);
  text +=
      fmt::format("memory {:.4g} GB/s ({})", ceilings->memory_bytes_per_s * 1e-9, ceilings->source);
  return report::wrapped(text, kWidth, 2);
}

std::string ncu_text(const std::vector<advice::RooflinePoint>& points, const advice::Facts& facts) {
  if (!facts.on_device) return "Counters: of kernels on a GPU only; these are host ranks\n";
  std::vector<std::string> kernels;
  for (const auto& one : points) kernels.push_back(one.name);
  const auto run = facts.environment.find("command_line");
  const std::string command =
      advice::ncu_command(kernels, run == facts.environment.end() ? "PROGRAM ..." : run->second);
  return command.empty() ? "" : "Counters of these kernels, one rank at a time:\n" + command + "\n";
}

}  // namespace

int run_roofline(const RooflineOptions& options) {
  ExaminedRun run(options.inputs, {.threads = options.threads});
  const auto counters = read_counters(options, run.analysis());
  std::vector<advice::RooflinePoint> points;
  for (const auto& operation : report::top_operations_json(run.analysis())) {
    if (points.size() == static_cast<std::size_t>(options.operations)) break;
    points.push_back(advice::place_operation(operation, run.facts(), counters));
  }
  if (!options.json.empty()) core::write_file_atomically(options.json, run.report_text(counters));
  const report::TextStyle style{.width_columns = kWidth, .color = detect_terminal(1).color};
  const std::string text = report::text_of(table_of(points), style) + "\n" + causes_text(points) +
                           "\n" + roofs_text(run.facts().ceilings) + ncu_text(points, run.facts());
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace sidestream::launch
