// Tables of kernels, operators, modules and memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "profiling/analysis/self_times.hpp"
#include "profiling/report/tables.hpp"

namespace sidestream::report {
namespace {

using analysis::Analysis;
using trace::Kind;
using trace::RankTimeline;

std::string number(std::int64_t value) { return std::to_string(value); }

std::string triple(const std::array<std::uint32_t, 3>& three) {
  return fmt::format("{}x{}x{}", three[0], three[1], three[2]);
}

struct OperatorSums {
  std::int64_t calls = 0, host_total_ns = 0, host_self_ns = 0, device_total_ns = 0,
               device_self_ns = 0;

  void add(const RankTimeline& timeline, const analysis::SelfTime& one) {
    ++calls;
    host_total_ns += timeline.duration_ns(one.row);
    host_self_ns += one.self_ns;
    device_total_ns += one.device_total_ns;
    device_self_ns += one.device_self_ns;
  }
  std::vector<std::string> cells() const {
    return {number(calls), number(host_total_ns), number(host_self_ns), number(device_total_ns),
            number(device_self_ns)};
  }
};

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string path_of(const std::vector<analysis::SelfTime>& times, std::size_t index,
                    const RankTimeline& timeline) {
  std::string path(timeline.name(times[index].row));
  for (std::size_t at = times[index].parent; at != analysis::kNoParent; at = times[at].parent)
    path = std::string(timeline.name(times[at].row)) + " > " + path;
  return path;
}

}  // namespace

Table kernels_table(const Analysis& all) {
  using Key = std::tuple<std::string, std::string, std::string, std::uint32_t, std::uint32_t>;
  struct Sums {
    std::int64_t calls = 0, total_ns = 0, shortest_ns = INT64_MAX, longest_ns = 0;
    double occupied_ns = 0;
  };
  std::map<Key, Sums> kernels;
  for (const analysis::RankView& rank : all.ranks) {
    for (std::size_t row = 0; row < rank.timeline->size(); ++row) {
      const trace::DeviceDetail* detail = rank.timeline->device(row);
      if (rank.timeline->kind(row) != Kind::kKernel || detail == nullptr) continue;
      Sums& sums = kernels[{std::string(rank.timeline->name(row)), triple(detail->grid),
                            triple(detail->block), detail->registers_per_thread,
                            detail->shared_memory_bytes}];
      const std::int64_t duration_ns = rank.timeline->duration_ns(row);
      ++sums.calls;
      sums.total_ns += duration_ns;
      sums.shortest_ns = std::min(sums.shortest_ns, duration_ns);
      sums.longest_ns = std::max(sums.longest_ns, duration_ns);
      sums.occupied_ns +=
          static_cast<double>(duration_ns) * static_cast<double>(detail->occupancy_percent);
    }
  }
  Table table{
      .title = "kernels",
      .header = {"kernel", "grid", "block", "registers", "shared_memory_bytes", "tensor_cores",
                 "calls", "total_ns", "shortest_ns", "longest_ns", "occupancy_percent"},
      .rows = {}};
  for (const auto& [key, sums] : kernels) {
    const auto& [name, grid, block, registers, shared] = key;
    const double occupancy =
        sums.total_ns == 0 ? -1 : sums.occupied_ns / static_cast<double>(sums.total_ns);
    table.rows.push_back({name, grid, block, number(registers), number(shared),
                          analysis::uses_tensor_cores(name) ? "1" : "0", number(sums.calls),
                          number(sums.total_ns), number(sums.shortest_ns), number(sums.longest_ns),
                          occupancy < 0 ? "" : fmt::format("{:.1f}", occupancy)});
  }
  return table;
}

Table operators_table(const Analysis& all) {
  std::map<std::tuple<std::string, std::string, std::string>, OperatorSums> operators;
  for (const analysis::RankView& rank : all.ranks) {
    const RankTimeline& timeline = *rank.timeline;
    for (const analysis::SelfTime& one : analysis::self_times(timeline)) {
      if (timeline.kind(one.row) != Kind::kOperator) continue;
      const trace::HostDetail* detail = timeline.host(one.row);
      const std::string shapes(detail == nullptr ? "" : timeline.names[detail->shapes]);
      const std::string stack(detail == nullptr ? "" : timeline.names[detail->stack]);
      operators[{std::string(timeline.name(one.row)), shapes, stack}].add(timeline, one);
    }
  }
  Table table{.title = "operators",
              .header = {"operator", "shapes", "stack", "calls", "host_total_ns", "host_self_ns",
                         "device_total_ns", "device_self_ns"},
              .rows = {}};
  for (const auto& [key, sums] : operators)
    table.rows.push_back(
        joined({std::get<0>(key), std::get<1>(key), std::get<2>(key)}, sums.cells()));
  return table;
}

Table operator_tree_table(const Analysis& all) {
  std::map<std::string, OperatorSums> paths;
  for (const analysis::RankView& rank : all.ranks) {
    const std::vector<analysis::SelfTime> times = analysis::self_times(*rank.timeline);
    for (std::size_t i = 0; i < times.size(); ++i)
      paths[path_of(times, i, *rank.timeline)].add(*rank.timeline, times[i]);
  }
  Table table{.title = "operator_tree",
              .header = {"path", "calls", "host_total_ns", "host_self_ns", "device_total_ns",
                         "device_self_ns"},
              .rows = {}};
  for (const auto& [path, sums] : paths) table.rows.push_back(joined({path}, sums.cells()));
  return table;
}

// Ranges by name: layers carry the path of their parameters, PyTorch's modules their hierarchy.
Table modules_table(const Analysis& all) {
  std::map<std::string, OperatorSums> modules;
  for (const analysis::RankView& rank : all.ranks) {
    const RankTimeline& timeline = *rank.timeline;
    for (const analysis::SelfTime& one : analysis::self_times(timeline)) {
      const trace::HostDetail* detail = timeline.host(one.row);
      const bool hierarchy = detail != nullptr && detail->module != trace::kNoName;
      if (timeline.kind(one.row) != Kind::kHostRange && !hierarchy) continue;
      modules[std::string(hierarchy ? timeline.names[detail->module] : timeline.name(one.row))].add(
          timeline, one);
    }
  }
  Table table{.title = "modules",
              .header = {"module", "calls", "host_total_ns", "host_self_ns", "device_total_ns",
                         "device_self_ns"},
              .rows = {}};
  for (const auto& [name, sums] : modules) table.rows.push_back(joined({name}, sums.cells()));
  return table;
}

Table memory_table(const Analysis& all) {
  Table table{.title = "memory",
              .header = {"rank", "device", "time_ns", "bytes", "allocated_bytes", "reserved_bytes",
                         "address"},
              .rows = {}};
  for (const analysis::RankView& rank : all.ranks) {
    for (std::size_t row = 0; row < rank.timeline->size(); ++row) {
      const trace::MemoryDetail* detail = rank.timeline->memory(row);
      if (detail == nullptr) continue;
      table.rows.push_back({number(rank.timeline->info.rank),
                            detail->device < 0 ? "host" : number(detail->device),
                            number(rank.timeline->start_ns(row)), number(detail->bytes),
                            number(detail->allocated_bytes), number(detail->reserved_bytes),
                            std::to_string(detail->address)});
    }
  }
  return table;
}

Table memory_peaks_table(const Analysis& all) {
  struct Peak {
    std::int64_t allocated = -1, reserved = -1, allocations = 0, releases = 0;
  };
  std::map<std::pair<int, int>, Peak> peaks;
  for (const analysis::RankView& rank : all.ranks) {
    for (std::size_t row = 0; row < rank.timeline->size(); ++row) {
      const trace::MemoryDetail* detail = rank.timeline->memory(row);
      if (detail == nullptr) continue;
      Peak& peak = peaks[{rank.timeline->info.rank, detail->device}];
      peak.allocated = std::max(peak.allocated, detail->allocated_bytes);
      peak.reserved = std::max(peak.reserved, detail->reserved_bytes);
      ++(detail->bytes > 0 ? peak.allocations : peak.releases);
    }
  }
  Table table{.title = "memory_peaks",
              .header = {"rank", "device", "peak_allocated_bytes", "peak_reserved_bytes",
                         "allocations", "releases"},
              .rows = {}};
  for (const auto& [key, peak] : peaks) {
    table.rows.push_back({number(key.first), key.second < 0 ? "host" : number(key.second),
                          number(peak.allocated), number(peak.reserved), number(peak.allocations),
                          number(peak.releases)});
  }
  return table;
}

}  // namespace sidestream::report
