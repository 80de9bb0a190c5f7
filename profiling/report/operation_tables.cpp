// Tables of operators, kernels and modules.
#include "profiling/report/tables.hpp"

namespace sidestream::report {
namespace {

std::string triple(const std::array<std::uint32_t, 3>& three) {
  return std::to_string(three[0]) + "x" + std::to_string(three[1]) + "x" + std::to_string(three[2]);
}

std::string joined(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& one : path) text += (text.empty() ? "" : " > ") + one;
  return text;
}

void append(Row& row, std::initializer_list<Cell> cells) {
  row.insert(row.end(), cells.begin(), cells.end());
}

void append(Row& row, const analysis::CallSums& sums) {
  append(row, {sums.calls, sums.host_total_ns, sums.host_self_ns, sums.device_total_ns,
               sums.device_self_ns});
}

void append_work(Row& row, const analysis::KnownWork& flops, const analysis::KnownWork& bytes) {
  append(row, {or_empty(flops.total()), or_empty(flops.per_s()), or_empty(bytes.total()),
               or_empty(bytes.per_s())});
}

}  // namespace

Table kernels_table(const Findings& from) {
  Table table{
      .title = "kernels",
      .header = {"kernel", "grid", "block", "registers", "shared_memory_bytes", "tensor_cores",
                 "calls", "total_ns", "mean_ns", "shortest_ns", "longest_ns", "occupancy_percent",
                 "blocks_per_sm", "flops", "flops_per_s", "bytes", "bytes_per_s"},
      .rows = {}};
  for (const analysis::KernelRow& one : from.details.kernels) {
    Row& row = table.rows.emplace_back();
    append(row,
           {one.name, triple(one.grid), triple(one.block), std::int64_t{one.registers_per_thread},
            std::int64_t{one.shared_memory_bytes}, std::int64_t{one.tensor_cores}, one.calls,
            one.total_ns, one.total_ns / one.calls, one.shortest_ns, one.longest_ns,
            or_empty(one.occupancy_percent), or_empty(one.blocks_per_sm)});
    append_work(row, one.flops, one.bytes);
  }
  return table;
}

Table operators_table(const Findings& from) {
  Table table{.title = "operators",
              .header = {"operator", "shapes", "stack", "calls", "host_total_ns", "host_self_ns",
                         "device_total_ns", "device_self_ns", "flops", "flops_per_s", "bytes",
                         "bytes_per_s"},
              .rows = {}};
  for (const analysis::OperatorRow& one : from.details.operators) {
    Row& row = table.rows.emplace_back();
    append(row, {one.name, one.shapes, one.stack});
    append(row, one.sums);
    append_work(row, one.flops, one.bytes);
  }
  return table;
}

Table operator_tree_table(const Findings& from) {
  Table table{.title = "operator_tree",
              .header = {"path", "depth", "calls", "host_total_ns", "host_self_ns",
                         "device_total_ns", "device_self_ns"},
              .rows = {}};
  for (const analysis::TreeRow& one : from.details.tree) {
    Row& row = table.rows.emplace_back();
    append(row, {joined(one.path), static_cast<std::int64_t>(one.path.size())});
    append(row, one.sums);
  }
  return table;
}

Table modules_table(const Findings& from) {
  Table table{
      .title = "modules",
      .header = {"module", "kind", "calls", "host_total_ns", "host_self_ns", "device_total_ns",
                 "device_self_ns", "backward_host_ns", "backward_device_ns"},
      .rows = {}};
  for (const analysis::ModuleRow& one : from.details.modules) {
    Row& row = table.rows.emplace_back();
    append(row, {one.name, one.kind});
    append(row, one.sums);
    append(row, {one.backward_host_ns, one.backward_device_ns});
  }
  return table;
}

}  // namespace sidestream::report
