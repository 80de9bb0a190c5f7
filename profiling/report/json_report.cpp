#include "profiling/report/json_report.hpp"

#include <algorithm>
#include <map>

#include "profiling/analysis/verdict.hpp"
#include "profiling/report/heat_map.hpp"
#include "profiling/report/json_details.hpp"
#include "profiling/report/memory_curve.hpp"
#include "profiling/report/missing_figures.hpp"
#include "profiling/report/or_null.hpp"
#include "profiling/report/straggler_line.hpp"
#include "profiling/report/summary.hpp"
#include "profiling/report/urgent_lines.hpp"

namespace sidestream::report {
namespace {

using analysis::Analysis;
using Json = nlohmann::ordered_json;

constexpr std::size_t kOperations = 20;

Json known_or_null(std::int64_t value) { return value < 0 ? Json() : Json(value); }

Json by_rank(const std::map<int, double>& values) {
  Json json = Json::object();
  for (const auto& [rank, value] : values) json[std::to_string(rank)] = value;
  return json;
}

Json at_or_null(const std::map<int, double>& values, int rank) {
  const auto found = values.find(rank);
  return found == values.end() ? Json() : Json(found->second);
}

Json clock_of(const Analysis& all) {
  const trace::ClockModel& clock = all.set->clock;
  Json offsets = Json::array(), drifts = Json::array(), sure = Json::array(),
       drift_sure = Json::array();
  for (const int rank : all.set->ranks()) {
    offsets.push_back(static_cast<double>(clock.of(rank).offset_ns) / 1000);
    drifts.push_back(clock.of(rank).drift_ppm);
    sure.push_back(at_or_null(clock.uncertainty_us, rank));
    drift_sure.push_back(at_or_null(clock.drift_uncertainty_ppm, rank));
  }
  return {{"method", clock.method},
          {"ranks", all.set->ranks()},
          {"offset_us", offsets},
          {"drift_ppm", drifts},
          {"offset_uncertainty_us", sure},
          {"drift_uncertainty_ppm", drift_sure},
          {"residual_us_p50", clock.has_residual ? Json(clock.residual_us_p50) : Json()},
          {"residual_us_p95", clock.has_residual ? Json(clock.residual_us_p95) : Json()}};
}

Json counters_of(const analysis::DeviceCounters& one) {
  if (one.samples == 0) return nullptr;
  return {{"samples", one.samples},
          {"tensor_active", or_null(one.tensor_active)},
          {"sm_active", or_null(one.sm_active)},
          {"dram_read", or_null(one.dram_read)},
          {"dram_written", or_null(one.dram_written)}};
}

Json counters_of_ranks(const analysis::DeviceCounterTable& table) {
  Json list = Json::array();
  for (const auto& [rank, one] : table.of_ranks) {
    list.push_back({{"rank", rank}});
    list.back().update(counters_of(one));
    list.back()["tensor_core_share"] = or_null(one.tensor_core_share());
  }
  return list;
}

Json idle_of(const analysis::IdleCauses& idle) {
  return {{"data", idle.data_ns}, {"host", idle.host_ns}, {"sync", idle.sync_ns},
          {"comm", idle.comm_ns}, {"lock", idle.lock_ns}, {"other", idle.other_ns}};
}

Json step_of(const analysis::StepRow& row) {
  return {{"rank", row.rank},
          {"step", or_null(row.step)},
          {"tags", row.tags},
          {"window_ns", row.budget.window_ns},
          {"compute_ns", row.budget.compute_ns},
          {"overlapped_comm_ns", row.budget.overlapped_comm_ns},
          {"exposed_comm_ns", row.budget.exposed_comm_ns},
          {"exposed_memcpy_ns", row.budget.exposed_memcpy_ns},
          {"idle_ns", row.budget.idle_ns},
          {"idle_by_cause_ns", idle_of(row.idle)}};
}

Json rank_means_of(const Analysis& all) {
  Json list = Json::array();
  for (const auto& [rank, mean] : means_of_ranks(all)) {
    if (mean.steps == 0) continue;
    list.push_back({{"rank", rank},
                    {"steps", mean.steps},
                    {"window_ns", mean.window_ns},
                    {"compute_ns", mean.compute_ns},
                    {"exposed_comm_ns", mean.exposed_comm_ns},
                    {"exposed_memcpy_ns", mean.exposed_memcpy_ns},
                    {"idle_ns", mean.idle_ns},
                    {"idle_by_cause_ns", idle_of(mean.idle)}});
  }
  return list;
}

// What the FLOPs were computed on.
Json shapes_of(const analysis::Operation& one) {
  constexpr std::size_t kShapes = 8;
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(kShapes, one.shaped.size()); ++i) {
    const analysis::ShapedWork& work = one.shaped[i];
    list.push_back({{"operator", work.operator_name},
                    {"shapes", work.shapes},
                    {"types", work.types},
                    {"flops", work.flops}});
  }
  return list;
}

Json operation_of(const analysis::Operation& one, double all_steps_ns) {
  return {{"name", one.name},
          {"calls", one.calls},
          {"total_ns", one.total_ns},
          {"share", one.share},  // of the time of all operations
          {"step_share", or_null(step_share(one, all_steps_ns))},
          {"flops", or_null(one.flops.total())},
          {"bytes", or_null(one.bytes.total())},
          {"bytes_at_least", one.bytes_at_least},  // results of some calls are not in it
          {"flops_per_s", or_null(one.flops.per_s())},
          {"bytes_per_s", or_null(one.bytes.per_s())},
          {"roofline_bound", nullptr},
          {"cause", nullptr},
          {"kind", trace::name_of(one.kind)},
          {"occupancy_percent", or_null(one.occupancy_percent)},
          {"shapes", shapes_of(one)}};
}

Json collective_of(const analysis::CollectiveRow& row) {
  return {{"name", row.name},
          {"bucket", known_or_null(row.bucket)},
          {"bytes", known_or_null(row.bytes)},
          {"count", row.count},
          {"transfer_ns", or_null(row.transfer_ns)},
          {"wait_ns", or_null(row.wait_ns)},
          {"exposed_ns", row.exposed_ns},
          {"overlapped_ns", row.overlapped_ns},
          {"alg_gb_per_s", or_null(row.alg_gb_per_s)},
          {"bus_gb_per_s", or_null(row.bus_gb_per_s)},
          {"total_ns", row.total_ns},
          {"blocking_ns", row.blocking_ns},
          {"slowest_rank", or_null(row.slowest_rank)}};
}

Json straggler_of(const statistics::Straggler& one) {
  return {{"rank", one.rank},
          {"ranks", one.ranks()},
          {"phase", one.phase.empty() ? Json() : Json(one.phase)},
          {"cost_ns_per_step", one.cost_ns_per_step},
          {"cost_low_ns", or_null(one.cost_low_ns)},
          {"cost_high_ns", or_null(one.cost_high_ns)},
          {"steps", one.steps},
          {"steps_last", one.steps_last}};
}

Json usually_last_of(const statistics::UsuallyLast& one) {
  return {{"rank", one.rank},
          {"median_cost_ns_per_step", one.median_cost_ns},
          {"steps", one.steps},
          {"steps_last", one.steps_last}};
}

Json hang_of(const analysis::Hang& hang) {
  Json ranks = Json::array();
  for (const analysis::StandingRank& one : hang.ranks)
    ranks.push_back({{"rank", one.rank},
                     {"step", or_null(one.step)},
                     {"phase", one.phase.empty() ? Json() : Json(one.phase)},
                     {"collective", one.waits() ? Json(one.collective) : Json()},
                     {"bucket", known_or_null(one.bucket)},
                     {"since_ns", one.since_ns}});
  return {{"is_sure", hang.is_sure},
          {"awaited", hang.awaited()},
          {"ranks", ranks},
          {"ranks_past", hang.past},
          {"ranks_between_steps", hang.between_steps},
          {"ranks_without_records", hang.without_records}};
}

Json outlier_of(const statistics::Outlier& one) {
  return {{"step", one.step},
          {"length_ns", one.length_ns},
          {"medians", one.medians},
          {"rank", one.rank},
          {"phase", one.phase.empty() ? Json() : Json(one.phase)}};
}

Json wall_time_of(const RunMetrics& run) {
  if (run.wall_time.empty()) return nullptr;
  Json parts = {{"wall_s", run.wall_s}};
  for (const WallTimePart& part : run.wall_time) parts[part.key] = part.seconds;
  return parts;
}

Json metrics_of(const Analysis& all, const RunMetrics& run) {
  const analysis::Utilisation& use = all.utilisation;
  const Throughput throughput = throughput_of(all, run);
  return {{"step_ms_p50", or_null(median_step_ms(all.ranks))},
          {"tokens_per_s", or_null(throughput.tokens_per_s)},
          {"tokens_source", throughput.tokens_per_s ? Json(throughput.tokens_source) : Json()},
          {"mfu", or_null(throughput.mfu)},
          {"mfu_palm", or_null(throughput.mfu_palm)},
          {"tensor_core_share", or_null(use.tensor_core_share)},
          {"tensor_core_source",
           use.tensor_core_source.empty() ? Json() : Json(use.tensor_core_source)},
          {"ettr", or_null(run.ettr)},
          {"ettr_account", wall_time_of(run)},
          {"gpu_counters", counters_of_ranks(all.device_counters)},
          {"gpu_utilisation", or_null(use.gpu_utilisation)},
          {"sm_efficiency", or_null(use.sm_efficiency)},
          {"occupancy", or_null(use.occupancy)},
          {"process_cores", or_null(all.system.process_cores)},
          {"process_cores_short", or_null(all.system.process_cores_short)},
          {"machine_cpu", or_null(all.system.machine_cpu)},
          {"disk_busy", or_null(all.system.disk_busy)},
          {"gpu_clock_mhz", or_null(all.system.gpu_clock_mhz)},
          {"gpu_held_down", or_null(all.system.gpu_held_down)},
          {"joules_per_token", or_null(all.system.joules_per_token)},
          {"system_samples", all.system.samples},
          {"mfu_source", throughput.source.empty() ? Json() : Json(throughput.source)},
          {"profiler_was_off", all.model.profiler_was_off},
          {"profiler_cost", or_null(all.model.profiler_cost)},
          {"profiler_cost_below", or_null(all.model.profiler_cost_below)},
          {"unprofiled_data_wait", by_rank(all.model.unprofiled_data_wait)},
          {"steps_without_profiler", all.model.steps_without_profiler}};
}

Json not_measured(const Analysis& all, const RunMetrics& run) {
  Json list = Json::array();
  for (const auto& [name, needs] : missing_figures(all, run))
    list.push_back({{"rule", name}, {"needs", needs}});
  return list;
}

// What a page shows beside the lists above.
void add_overview(Json& report, const Analysis& all) {
  const MeanStep mean = mean_step(all.ranks);
  Json parts = Json::array();
  for (const StepPart& part : parts_of(mean))
    parts.push_back({{"part", part.name}, {"time_ns", part.time_ns}});
  report["overview"] = {{"steps", mean.steps},
                        {"tagged_steps", tagged_steps(mean)},
                        {"left_out", mean.left_out},
                        {"mean_step", parts}};
  report["overview"]["operation_steps"] = all.operation_steps.steps;
  report["overview"]["profiled_only"] = all.operation_steps.profiled_only;
  if (all.verdict) {
    report["overview"]["verdict_shares"] = {{"io", all.verdict->io},
                                            {"cpu", all.verdict->cpu},
                                            {all.verdict->compute_word, all.verdict->compute},
                                            {"comm", all.verdict->comm}};
  }
  report["overlap_tax"] = {{"hidden_ns", all.tax.hidden_ns},
                           {"tax_ns", all.tax.tax_ns},
                           {"net_gain_ns", all.tax.net_gain_ns()},
                           {"judged_ns", all.tax.judged_ns},
                           {"beside_ns", all.tax.beside_ns}};
}

Json own_verdict(const RunMetrics& run) {
  if (!run.verdict) return nullptr;
  const OwnVerdict& own = *run.verdict;
  return {{"steps", own.steps},
          {"compute", own.compute},
          {"comm", own.comm},
          {"io", own.io},
          {"cpu", own.cpu}};
}

}  // namespace

Json top_operations_json(const Analysis& all) {
  Json list = Json::array();
  const double all_steps_ns = stepped_ns(all);
  for (std::size_t i = 0; i < std::min(kOperations, all.operations.size()); ++i)
    list.push_back(operation_of(all.operations[i], all_steps_ns));
  return list;
}

Json json_summary(const Analysis& all, const RunMetrics& run, const ShownSteps& shown) {
  Json report = {{"schema", 1}, {"world_size", all.set->world_size}, {"clock", clock_of(all)}};
  report["steps"] = Json::array();
  const CommonTime time(all);
  for (std::size_t file = 0; file < all.ranks.size(); ++file) {
    const analysis::RankView& rank = all.ranks[file];
    for (std::size_t i = 0; i < rank.steps.size(); ++i) {
      const analysis::StepRow& row = rank.steps[i];
      if (!shown.contain(row.step)) continue;
      Json& step = report["steps"].emplace_back(step_of(row));
      step["gpu_counters"] = counters_of(all.device_counters.of_steps[file][i]);
      step["start_ns"] = time(*rank.timeline, row.window.start_ns);
    }
  }
  report["steps_left_out"] = shown.left_out_rows();
  report["rank_means"] = rank_means_of(all);
  report["top_ops"] = top_operations_json(all);
  report["collectives"] = Json::array();
  for (const analysis::CollectiveRow& row : all.collectives)
    report["collectives"].push_back(collective_of(row));
  report["stragglers"] = Json::array();
  if (all.straggler) report["stragglers"].push_back(straggler_of(*all.straggler));
  report["stragglers_text"] = straggler_line(all);
  report["usually_last"] = all.usually_last ? usually_last_of(*all.usually_last) : Json();
  report["heat_map"] = heat_map(all, shown);
  report["rotating_wait_ns_per_step"] = or_null(all.rotating_wait_ns);
  report["hang"] = all.hang ? hang_of(*all.hang) : Json();
  report["outliers"] = Json::array();
  for (const statistics::Outlier& one : all.outliers) report["outliers"].push_back(outlier_of(one));
  report["urgent"] = urgent_lines(all);
  report["metrics"] = metrics_of(all, run);
  report["verdict"] = all.verdict ? Json(all.verdict->word) : Json();
  report["verdict_text"] = all.verdict ? Json(statistics::text_of(*all.verdict)) : Json();
  report["verdict_sure"] = all.verdict ? Json(all.verdict->is_sure()) : Json();
  report["run_verdict"] = own_verdict(run);
  report["advice"] = Json::array();
  report["not_measured"] = not_measured(all, run);
  report["import"] = {{"files", all.set->files},
                      {"events", all.set->events},
                      {"skipped", skipped_events(*all.set)}};
  report["import"]["warnings"] = all.set->warnings;
  add_overview(report, all);
  return report;
}

Json json_report(const Analysis& all, const analysis::Details& details, const RunMetrics& run) {
  Json report = json_summary(all, run);
  report["timeline"] = lanes_json(all);
  report["memory_curves"] = memory_curves(all);
  report["tables"] = tables_json({all, details});
  return report;
}

}  // namespace sidestream::report
