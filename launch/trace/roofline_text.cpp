#include "launch/trace/roofline_text.hpp"

#include <fmt/format.h>

#include <string>

#include "profiling/report/json_report.hpp"
#include "profiling/report/summary.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::launch {
namespace {

std::string or_dash(const std::optional<double>& value, double unit, const char* text) {
  return value ? fmt::format("{:.4g} {}", *value / unit, text) : "-";
}

// Of operators whose result is not known the inputs alone.
std::string bandwidth_text(const advice::RooflinePoint& one) {
  const std::string text = or_dash(one.bytes_per_s, 1e9, "");
  return one.bytes_per_s && one.bytes_at_least ? "at least " + text : text;
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
    return "not known: what the machine of these traces reaches. `sidestream bench ceilings` "
           "measures it there, and a run directory says which one it is";
  return "not known: the trace has neither FLOPs nor bytes of it; `train --profile` writes the "
         "shapes that tell them with --profile-shapes";
}

void add_roof(std::string& text, const advice::Ceilings& ceilings, const std::string& name,
              const std::string& figure) {
  text += fmt::format("{} {}{}, ", name, figure,
                      ceilings.of_datasheet.contains(name) ? " (datasheet)" : "");
}

std::string short_name(const advice::RooflinePoint& one) {
  constexpr std::size_t kWidest = 60;
  return report::cut(one.name, kWidest);
}

// Where in the roofline it is: empty where there is no roof.
std::string place_text(const advice::RooflinePoint& one) {
  if (!one.share_of_roof) return "";
  return fmt::format(" ({} of the {} roof)", report::percent_text(*one.share_of_roof),
                     one.bound.empty() ? "machine's" : one.bound);
}

}  // namespace

std::vector<advice::RooflinePoint> longest_operations(const ExaminedRun& run,
                                                      const advice::NcuByKernel& counters,
                                                      std::size_t most) {
  std::vector<advice::RooflinePoint> points;
  for (const auto& operation : report::top_operations_json(run.analysis())) {
    if (points.size() == most) break;
    points.push_back(advice::place_operation(operation, run.facts(), counters));
  }
  return points;
}

report::Table roofline_table(const std::vector<advice::RooflinePoint>& points) {
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

std::string causes_text(const std::vector<advice::RooflinePoint>& points, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const advice::RooflinePoint& one = points[i];
    const std::string cause = one.cause.empty() ? unknown_cause(one) : one.cause;
    text += report::wrapped(fmt::format("{}. {}: {}", i + 1, short_name(one), cause), width, 3);
    if (one.counters)
      text += report::wrapped(fmt::format("   ncu, {} launches: {}", one.counters->launches,
                                          counters_text(*one.counters)),
                              width, 6);
  }
  return text;
}

std::string roofs_text(const std::optional<advice::Ceilings>& ceilings, std::size_t width) {
  if (!ceilings)
    return report::wrapped(
        "Roofs: not measured; `sidestream bench ceilings` measures them on the machine of the run",
        width, 2);
  std::string text = "Roofs: ";
  for (const auto& [dtype, peak] : ceilings->flops_per_s)
    add_roof(text, *ceilings, dtype, report::rate_text(peak, "FLOP/s"));
  for (const auto& [name, rate] :
       {std::pair("memory", ceilings->memory_bytes_per_s),
        std::pair("host to device", ceilings->host_to_device_bytes_per_s),
        std::pair("device to host", ceilings->device_to_host_bytes_per_s),
        std::pair("link", ceilings->link_bytes_per_s)})
    if (rate > 0) add_roof(text, *ceilings, name, report::rate_text(rate, "B/s"));
  return report::wrapped(text + ceilings->source, width, 2);
}

std::string short_causes_text(const std::vector<advice::RooflinePoint>& points, std::size_t width) {
  if (points.empty()) return "";
  std::string text = report::wrapped(
      "Why the longest take so long (`sidestream-trace roofline` has the figures)", width, 2);
  for (const advice::RooflinePoint& one : points)
    text += report::wrapped(fmt::format("- {}{}: {}", short_name(one), place_text(one),
                                        one.cause.empty() ? unknown_cause(one) : one.cause),
                            width, 2);
  return text;
}

}  // namespace sidestream::launch
