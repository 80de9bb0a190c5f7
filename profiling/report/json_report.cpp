#include "profiling/report/json_report.hpp"

#include <nlohmann/json.hpp>

#include "profiling/report/summary.hpp"

namespace sidestream::report {
namespace {

using analysis::Analysis;
using Json = nlohmann::ordered_json;

constexpr std::size_t kOperations = 20;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json known(std::int64_t value) { return value < 0 ? Json() : Json(value); }

Json clock_of(const Analysis& all) {
  const trace::ClockModel& clock = all.set->clock;
  Json offsets = Json::array(), drifts = Json::array();
  for (const int rank : all.set->ranks()) {
    offsets.push_back(static_cast<double>(clock.of(rank).offset_ns) / 1000);
    drifts.push_back(clock.of(rank).drift_ppm);
  }
  return {{"method", clock.method},
          {"offset_us", offsets},
          {"drift_ppm", drifts},
          {"residual_us_p50", clock.has_residual ? Json(clock.residual_us_p50) : Json()},
          {"residual_us_p95", clock.has_residual ? Json(clock.residual_us_p95) : Json()}};
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
          {"idle_by_cause_ns",
           {{"data", row.idle.data_ns},
            {"host", row.idle.host_ns},
            {"sync", row.idle.sync_ns},
            {"comm", row.idle.comm_ns},
            {"lock", row.idle.lock_ns},
            {"other", row.idle.other_ns}}}};
}

Json operation_of(const analysis::Operation& one) {
  const bool timed = one.bytes >= 0 && one.total_ns > 0;
  return {{"name", one.name},
          {"calls", one.calls},
          {"total_ns", one.total_ns},
          {"share", one.share},
          {"flops", nullptr},
          {"bytes", known(one.bytes)},
          {"flops_per_s", nullptr},
          {"bytes_per_s",
           timed ? Json(static_cast<double>(one.bytes) * 1e9 / static_cast<double>(one.total_ns))
                 : Json()},
          {"roofline_bound", nullptr},
          {"cause", nullptr}};
}

Json collective_of(const analysis::CollectiveRow& row) {
  return {{"name", row.name},
          {"bucket", known(row.bucket)},
          {"bytes", known(row.bytes)},
          {"count", row.count},
          {"transfer_ns", or_null(row.transfer_ns)},
          {"wait_ns", or_null(row.wait_ns)},
          {"exposed_ns", row.exposed_ns},
          {"overlapped_ns", row.overlapped_ns},
          {"alg_gb_per_s", or_null(row.alg_gb_per_s)},
          {"bus_gb_per_s", or_null(row.bus_gb_per_s)},
          {"slowest_rank", or_null(row.slowest_rank)}};
}

Json straggler_of(const analysis::Straggler& one) {
  return {{"rank", one.rank},
          {"phase", one.phase.empty() ? Json() : Json(one.phase)},
          {"cost_ns_per_step", one.cost_ns_per_step}};
}

Json metrics_of(const Analysis& all, const RunMetrics& run) {
  const analysis::Utilisation& use = all.utilisation;
  return {{"step_ms_p50", or_null(median_step_ms(all.ranks))},
          {"tokens_per_s", or_null(run.tokens_per_s)},
          {"mfu", or_null(run.mfu)},
          {"mfu_palm", or_null(run.mfu_palm)},
          {"tensor_core_share", or_null(use.tensor_core_share)},
          {"tensor_core_source",
           use.tensor_core_source.empty() ? Json() : Json(use.tensor_core_source)},
          {"ettr", or_null(run.ettr)},
          {"gpu_utilisation", or_null(use.gpu_utilisation)}};
}

void need(Json& list, bool missing, const char* rule, const char* needs) {
  if (missing) list.push_back({{"rule", rule}, {"needs", needs}});
}

Json not_measured(const Analysis& all, const RunMetrics& run) {
  Json list = Json::array();
  const bool transfers = all.collectives.empty() || all.collectives.front().transfer_ns.has_value();
  need(list, !run.mfu, "mfu", "the run directory of the traces (metrics.jsonl)");
  need(list, !run.mfu_palm, "mfu_palm", "the run directory of the traces (metrics.jsonl)");
  need(list, !run.tokens_per_s, "tokens_per_s", "the run directory of the traces (metrics.jsonl)");
  need(list, !run.ettr, "ettr", "the run directory of the traces (run.json)");
  need(list, !all.utilisation.gpu_utilisation, "gpu_utilisation", "device events");
  need(list, !all.utilisation.tensor_core_share, "tensor_core_share", "kernels");
  need(list, !transfers, "transfer and waiting of collectives",
       "the traces of all ranks of a process group");
  need(list, !all.verdict, "verdict", "steps, or device events");
  return list;
}

}  // namespace

std::string json_report(const Analysis& all, const RunMetrics& run) {
  Json report = {{"schema", 1}, {"world_size", all.set->world_size}, {"clock", clock_of(all)}};
  report["steps"] = Json::array();
  for (const analysis::RankView& rank : all.ranks) {
    for (const analysis::StepRow& row : rank.steps) report["steps"].push_back(step_of(row));
  }
  report["top_ops"] = Json::array();
  for (std::size_t i = 0; i < std::min(kOperations, all.operations.size()); ++i)
    report["top_ops"].push_back(operation_of(all.operations[i]));
  report["collectives"] = Json::array();
  for (const analysis::CollectiveRow& row : all.collectives)
    report["collectives"].push_back(collective_of(row));
  report["stragglers"] = Json::array();
  if (all.straggler) report["stragglers"].push_back(straggler_of(*all.straggler));
  report["metrics"] = metrics_of(all, run);
  report["verdict"] = all.verdict ? Json(all.verdict->word) : Json();
  report["advice"] = Json::array();
  report["not_measured"] = not_measured(all, run);
  report["import"] = {{"files", all.set->files},
                      {"events", all.set->events},
                      {"skipped", skipped_events(*all.set)}};
  report["import"]["warnings"] = all.set->warnings;
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sidestream::report
