// Tables of memory: peaks, what they were made of, the curve, and every allocation.
#include "profiling/report/summary.hpp"
#include "profiling/report/tables.hpp"

namespace sidestream::report {
namespace {

Cell rank_cell(int rank) { return std::int64_t{rank}; }
// LibTorch reserves nothing of the host's memory, and writes a 0.
Cell reserved_cell(int device, std::int64_t bytes) {
  return device < 0 && bytes == 0 ? Cell() : known(bytes);
}
Cell device_cell(int device) { return device < 0 ? Cell("host") : Cell(std::to_string(device)); }

}  // namespace

Table memory_peaks_table(const Findings& from) {
  Table table{.title = "memory_peaks",
              .header = {"rank", "device", "peak_allocated_bytes", "peak_reserved_bytes",
                         "peak_time_ns", "allocations", "releases", "window"},
              .rows = {}};
  const CommonTime time(from.analysis);
  for (const analysis::MemoryUse& one : from.details.memory) {
    table.rows.push_back({rank_cell(one.rank), device_cell(one.device), one.peak_allocated_bytes,
                          known(one.peak_reserved_bytes), time(*one.timeline, one.peak_time_ns),
                          one.allocations, one.releases, one.timeline->info.window});
  }
  return table;
}

Table memory_categories_table(const Findings& from) {
  Table table{.title = "memory_categories",
              .header = {"rank", "device", "category", "at_peak_bytes", "allocations",
                         "allocated_bytes", "window"},
              .rows = {}};
  for (const analysis::MemoryUse& one : from.details.memory) {
    for (const analysis::MemoryCategory& category : one.categories) {
      table.rows.push_back({rank_cell(one.rank), device_cell(one.device), category.name,
                            category.bytes_at_peak, category.allocations, category.allocated_bytes,
                            one.timeline->info.window});
    }
  }
  return table;
}

Table memory_curve_table(const Findings& from) {
  Table table{.title = "memory_curve",
              .header = {"rank", "device", "time_ns", "allocated_bytes", "reserved_bytes"},
              .rows = {}};
  const CommonTime time(from.analysis);
  for (const analysis::MemoryUse& one : from.details.memory) {
    for (const analysis::MemoryPoint& point : one.curve) {
      table.rows.push_back({rank_cell(one.rank), device_cell(one.device),
                            time(*one.timeline, point.time_ns), point.allocated_bytes,
                            known(point.reserved_bytes)});
    }
  }
  return table;
}

Table memory_events_table(const Findings& from) {
  Table table{.title = "memory",
              .header = {"rank", "device", "time_ns", "bytes", "allocated_bytes", "reserved_bytes",
                         "address"},
              .rows = {}};
  const CommonTime time(from.analysis);
  for (const analysis::RankView& rank : from.analysis.ranks) {
    for (std::size_t row = 0; row < rank.timeline->size(); ++row) {
      const trace::MemoryDetail* detail = rank.timeline->memory(row);
      if (detail == nullptr) continue;
      table.rows.push_back({rank_cell(rank.timeline->info.rank), device_cell(detail->device),
                            time(*rank.timeline, rank.timeline->start_ns(row)), detail->bytes,
                            known(detail->allocated_bytes),
                            reserved_cell(detail->device, detail->reserved_bytes),
                            std::to_string(detail->address)});
    }
  }
  return table;
}

}  // namespace sidestream::report
