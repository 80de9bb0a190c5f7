#include "profiling/report/tables.hpp"

#include <fmt/format.h>

#include "profiling/analysis/phase_times.hpp"
#include "profiling/ranges/phases.hpp"
#include "profiling/trace/byte_sink.hpp"

namespace sidestream::report {
namespace {

using analysis::Analysis;

std::string number(std::int64_t value) { return std::to_string(value); }
std::string known(std::int64_t value) { return value < 0 ? "" : std::to_string(value); }

template <typename T>
std::string or_empty(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

const std::vector<std::pair<std::string, TableMaker>>& all_tables() {
  static const std::vector<std::pair<std::string, TableMaker>> tables = {
      {"steps", steps_table},
      {"collectives", collectives_table},
      {"distributed", distributed_table},
      {"data", data_table},
      {"kernels", kernels_table},
      {"overlap_tax", overlap_tax_table},
      {"operators", operators_table},
      {"operator_tree", operator_tree_table},
      {"modules", modules_table},
      {"memory", memory_table},
      {"memory_peaks", memory_peaks_table}};
  return tables;
}

Table steps_table(const Analysis& all) {
  Table table{
      .title = "steps",
      .header = {"rank", "step", "tags", "window_ns", "compute_ns", "overlapped_comm_ns",
                 "exposed_comm_ns", "exposed_memcpy_ns", "idle_ns", "idle_data_ns", "idle_host_ns",
                 "idle_sync_ns", "idle_comm_ns", "idle_lock_ns", "idle_other_ns"},
      .rows = {}};
  for (const analysis::RankView& rank : all.ranks) {
    for (const analysis::StepRow& row : rank.steps) {
      const analysis::StepBudget& b = row.budget;
      table.rows.push_back(
          {number(row.rank), or_empty(row.step), fmt::format("{}", fmt::join(row.tags, " ")),
           number(b.window_ns), number(b.compute_ns), number(b.overlapped_comm_ns),
           number(b.exposed_comm_ns), number(b.exposed_memcpy_ns), number(b.idle_ns),
           number(row.idle.data_ns), number(row.idle.host_ns), number(row.idle.sync_ns),
           number(row.idle.comm_ns), number(row.idle.lock_ns), number(row.idle.other_ns)});
    }
  }
  return table;
}

Table collectives_table(const Analysis& all) {
  Table table{.title = "collectives",
              .header = {"name", "bucket", "bytes", "count", "total_ns", "overlapped_ns",
                         "exposed_ns", "blocking_ns", "transfer_ns", "wait_ns", "alg_gb_per_s",
                         "bus_gb_per_s", "slowest_rank"},
              .rows = {}};
  for (const analysis::CollectiveRow& row : all.collectives) {
    table.rows.push_back({row.name, known(row.bucket), known(row.bytes), number(row.count),
                          number(row.total_ns), number(row.overlapped_ns), number(row.exposed_ns),
                          number(row.blocking_ns), or_empty(row.transfer_ns), or_empty(row.wait_ns),
                          or_empty(row.alg_gb_per_s), or_empty(row.bus_gb_per_s),
                          or_empty(row.slowest_rank)});
  }
  return table;
}

Table distributed_table(const Analysis& all) {
  Table table{.title = "distributed",
              .header = {"window", "group", "index", "kernel", "same_kernel", "rank", "start_ns",
                         "duration_ns", "transfer_ns", "wait_ns"},
              .rows = {}};
  for (const analysis::MatchedCollective& one : all.matches.matched) {
    for (const analysis::CollectivePart& part : one.parts) {
      table.rows.push_back({one.window, one.group, number(one.index), one.kernel,
                            one.same_kernel ? "1" : "0", number(part.rank), number(part.start_ns),
                            number(part.duration_ns), number(one.transfer_ns),
                            number(part.duration_ns - one.transfer_ns)});
    }
  }
  return table;
}

// Phases of each rank: the input phases say what the loader cost, the others what to compare it
// with.
Table data_table(const Analysis& all) {
  Table table{.title = "data", .header = {"rank", "phase", "total_ns", "ns_per_step"}, .rows = {}};
  for (const analysis::RankView& rank : all.ranks) {
    const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(1, rank.steps.size()));
    for (const auto& [phase, total_ns] : analysis::phase_times(*rank.timeline))
      table.rows.push_back(
          {number(rank.timeline->info.rank), phase, number(total_ns), number(total_ns / steps)});
  }
  return table;
}

Table overlap_tax_table(const Analysis& all) {
  Table table{.title = "overlap_tax",
              .header = {"kernel", "calls_alone", "calls_beside", "mean_alone_ns", "mean_beside_ns",
                         "tax_ns"},
              .rows = {}};
  for (const analysis::TaxedKernel& one : all.tax.kernels) {
    table.rows.push_back(
        {one.name, number(one.alone), number(one.beside), fmt::format("{:.1f}", one.mean_alone_ns),
         fmt::format("{:.1f}", one.mean_beside_ns), fmt::format("{:.0f}", one.tax_ns())});
  }
  return table;
}

void write_event_list(const Analysis& all, const std::filesystem::path& file) {
  trace::ByteSink sink(file);
  sink.write("rank,kind,name,start_ns,duration_ns,process,thread,correlation\r\n");
  for (const analysis::RankView& rank : all.ranks) {
    const trace::RankTimeline& timeline = *rank.timeline;
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      const trace::Track& track = timeline.tracks()[timeline.track_of(row)];
      sink.write(
          csv_of_row({number(timeline.info.rank), std::string(trace::name_of(timeline.kind(row))),
                      std::string(timeline.name(row)), number(timeline.start_ns(row)),
                      number(timeline.duration_ns(row)), track.process, track.thread,
                      std::to_string(timeline.correlation(row))}));
    }
  }
  sink.finish();
}

}  // namespace sidestream::report
