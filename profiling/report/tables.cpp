#include "profiling/report/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "profiling/analysis/phase_times.hpp"
#include "profiling/report/summary.hpp"

namespace sidestream::report {
namespace {

Cell number(std::int64_t value) { return value; }

double share_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

const std::vector<TableSource>& all_tables() {
  static const std::vector<TableSource> tables = {
      {"overview", "parts of the mean step", overview_table},
      {"ranks", "one line a rank", ranks_table},
      {"steps", "one line a step of a rank", steps_table},
      {"operators", "operators by name, shapes and stack", operators_table},
      {"operator_tree", "operators by what calls them", operator_tree_table},
      {"kernels", "kernels by name and launch configuration", kernels_table},
      {"overlap_tax", "kernels alone and beside collectives", overlap_tax_table},
      {"modules", "steps, phases, layers and modules", modules_table},
      {"memory_peaks", "memory of each rank and device", memory_peaks_table},
      {"memory_categories", "what the peak was made of", memory_categories_table},
      {"memory_curve", "memory over time", memory_curve_table},
      {"memory", "allocations and releases", memory_events_table},
      {"data", "phases of each rank", data_table},
      {"counters", "samples of processors, memory, disks, network and devices", counters_table},
      {"collectives", "collectives by kind and bucket", collectives_table},
      {"distributed", "every matched collective of every rank", distributed_table},
      {kEventsTable, "raw events, the longest first", events_table}};
  return tables;
}

const TableSource& table_named(const std::string& name) {
  std::string names;
  for (const TableSource& one : all_tables()) {
    if (one.name == name) return one;
    names += (names.empty() ? "" : ", ") + one.name;
  }
  throw core::ConfigError("no table '" + name + "': there are " + names);
}

Table overview_table(const Findings& from) {
  const MeanStep mean = mean_step(from.analysis.ranks);
  Table table{.title = "overview", .header = {"part", "time_ns", "share"}, .rows = {}};
  for (const StepPart& part : parts_of(mean))
    table.rows.push_back({part.name, part.time_ns, share_of(part.time_ns, mean.window_ns)});
  return table;
}

Table ranks_table(const Findings& from) {
  Table table{.title = "ranks",
              .header = {"rank", "file", "window", "device", "steps", "step_ns", "compute_ns",
                         "exposed_comm_ns", "exposed_memcpy_ns", "idle_ns", "waited_ns",
                         "between_steps_ns"},
              .rows = {}};
  const std::vector<RankMean> means = means_of_files(from.analysis);
  for (std::size_t i = 0; i < from.analysis.ranks.size(); ++i) {
    const analysis::RankView& rank = from.analysis.ranks[i];
    const RankMean& mean = means[i];
    const trace::RankInfo& info = rank.timeline->info;
    const std::string device = info.devices.empty() ? "" : info.devices.begin()->second.name;
    table.rows.push_back({number(info.rank), info.file, info.window, device, mean.steps,
                          mean.window_ns, mean.compute_ns, mean.exposed_comm_ns,
                          mean.exposed_memcpy_ns, mean.idle_ns, or_empty(mean.waited_ns),
                          or_empty(mean.between_ns)});
  }
  return table;
}

Table steps_table(const Findings& from) {
  Table table{
      .title = "steps",
      .header = {"rank", "step", "tags", "window_ns", "compute_ns", "overlapped_comm_ns",
                 "exposed_comm_ns", "exposed_memcpy_ns", "idle_ns", "idle_data_ns", "idle_host_ns",
                 "idle_sync_ns", "idle_comm_ns", "idle_lock_ns", "idle_other_ns"},
      .rows = {}};
  for (const analysis::RankView& rank : from.analysis.ranks) {
    for (const analysis::StepRow& row : rank.steps) {
      const analysis::StepBudget& b = row.budget;
      table.rows.push_back({number(row.rank), or_empty(row.step),
                            fmt::format("{}", fmt::join(row.tags, " ")), b.window_ns, b.compute_ns,
                            b.overlapped_comm_ns, b.exposed_comm_ns, b.exposed_memcpy_ns, b.idle_ns,
                            row.idle.data_ns, row.idle.host_ns, row.idle.sync_ns, row.idle.comm_ns,
                            row.idle.lock_ns, row.idle.other_ns});
    }
  }
  return table;
}

Table collectives_table(const Findings& from) {
  Table table{.title = "collectives",
              .header = {"name", "bucket", "bytes", "count", "total_ns", "overlapped_ns",
                         "exposed_ns", "blocking_ns", "transfer_ns", "wait_ns", "alg_gb_per_s",
                         "bus_gb_per_s", "slowest_rank"},
              .rows = {}};
  for (const analysis::CollectiveRow& row : from.analysis.collectives) {
    table.rows.push_back(
        {row.name, known(row.bucket), known(row.bytes), row.count, row.total_ns, row.overlapped_ns,
         row.exposed_ns, row.blocking_ns, or_empty(row.transfer_ns), or_empty(row.wait_ns),
         or_empty(row.alg_gb_per_s), or_empty(row.bus_gb_per_s), or_empty(row.slowest_rank)});
  }
  return table;
}

Table distributed_table(const Findings& from) {
  Table table{.title = "distributed",
              .header = {"window", "group", "index", "kernel", "same_kernel", "rank", "start_ns",
                         "duration_ns", "transfer_ns", "wait_ns"},
              .rows = {}};
  const CommonTime time(from.analysis);
  for (const analysis::MatchedCollective& one : from.analysis.matches.matched) {
    for (const analysis::CollectivePart& part : one.parts) {
      table.rows.push_back({one.window, one.group, one.index, one.kernel,
                            number(one.same_kernel ? 1 : 0), number(part.rank),
                            time(*from.analysis.ranks[part.timeline].timeline, part.start_ns),
                            part.duration_ns, one.transfer_ns, part.duration_ns - one.transfer_ns});
    }
  }
  return table;
}

// Phases of each rank: the input phases say what the
// loader cost, the others what to compare it with.
Table data_table(const Findings& from) {
  Table table{.title = "data", .header = {"rank", "phase", "total_ns", "per_step_ns"}, .rows = {}};
  std::map<int, std::int64_t> steps;
  std::map<int, std::map<std::string, std::int64_t>> phases;
  for (const analysis::RankView& rank : from.analysis.plain_ranks) {
    steps[rank.timeline->info.rank] += rank.counted_steps();
    for (const auto& [phase, total_ns] : analysis::phase_times(rank))
      phases[rank.timeline->info.rank][phase] += total_ns;
  }
  for (const auto& [rank, times] : phases) {
    for (const auto& [phase, total_ns] : times)
      table.rows.push_back(
          {number(rank), phase, total_ns, total_ns / std::max<std::int64_t>(1, steps[rank])});
  }
  return table;
}

Table counters_table(const Findings& from) {
  Table table{.title = "counters",
              .header = {"rank", "counter", "series", "samples", "mean", "least", "most"},
              .rows = {}};
  for (const analysis::CounterRow& row : from.details.counters) {
    table.rows.push_back(
        {number(row.rank), row.counter, row.series, row.samples, row.mean, row.least, row.most});
  }
  return table;
}

Table overlap_tax_table(const Findings& from) {
  Table table{.title = "overlap_tax",
              .header = {"kernel", "calls_alone", "calls_beside", "mean_alone_ns", "mean_beside_ns",
                         "tax_ns"},
              .rows = {}};
  for (const analysis::TaxedKernel& one : from.analysis.tax.kernels) {
    table.rows.push_back(
        {one.name, one.alone, one.beside, one.mean_alone_ns, one.mean_beside_ns, one.tax_ns()});
  }
  return table;
}

}  // namespace sidestream::report
