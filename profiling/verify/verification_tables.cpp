#include "profiling/verify/verification_tables.hpp"

#include <fmt/format.h>

namespace sidestream::verify {
namespace {

using report::Table;

std::string ms(double value) { return fmt::format("{:.4g}", value); }

Table blocks_table(const Verification& one) {
  Table table{
      .title = fmt::format("Blocks (median step, {} warm-up steps left out)", one.settings.warm_up),
      .header = {"block", "seed", "base, ms", "new, ms", "change, %"},
      .rows = {}};
  for (const BlockRow& row : one.blocks)
    table.rows.push_back({std::to_string(row.block), row.seed, ms(row.base_ms), ms(row.fresh_ms),
                          fmt::format("{:+.2f}", (row.fresh_ms / row.base_ms - 1) * 100)});
  return table;
}

report::Row part_row(const Part& part) {
  std::string change = fmt::format("{:+.3g}", part.change_ms());
  if (part.interval_ms)
    change += fmt::format(" ({:+.3g} to {:+.3g})", part.interval_ms->low, part.interval_ms->high);
  return {part.name, ms(part.base_ms), ms(part.fresh_ms), change};
}

// Steps of one window are too alike to say how windows scatter: these changes have no interval.
std::string basis_of(const TraceChange& change) {
  return fmt::format(" (of {} and {} profiled windows: no interval)", change.base_windows,
                     change.fresh_windows);
}

enum class EqualParts { kShown, kLeftOut };

Table parts_table(const std::string& title, const std::vector<Part>& parts, const char* sum_name,
                  EqualParts equal = EqualParts::kLeftOut) {
  Table table{.title = title, .header = {"part", "base, ms", "new, ms", "change, ms"}, .rows = {}};
  Part sum{sum_name, 0, 0};
  std::size_t left_out = 0;
  for (const Part& part : parts) {
    if (equal == EqualParts::kLeftOut && part.change_ms() == 0)
      ++left_out;
    else
      table.rows.push_back(part_row(part));
    sum.base_ms += part.base_ms;
    sum.fresh_ms += part.fresh_ms;
  }
  table.rows.push_back(part_row(sum));
  if (left_out > 0) table.title += fmt::format(" ({} without a change left out)", left_out);
  return table;
}

void add_losses(Table& table, const char* name, const std::optional<LossDifference>& loss) {
  if (!loss) return;
  table.rows.push_back(
      {name, fmt::format("{:.5f}", loss->base), fmt::format("{:.5f}", loss->fresh),
       fmt::format("{:+.2g}", loss->difference),
       loss->low ? fmt::format("{:+.2g} to {:+.2g}", *loss->low, *loss->high) : "-",
       loss->spread ? fmt::format("{:.2g}", *loss->spread) : "-"});
}

Table losses_table(const Verification& one) {
  Table table{.title = "Losses at the end (means over the blocks)",
              .header = {"loss", "base", "new", "new - base", "95 % interval", "spread of seeds"},
              .rows = {}};
  add_losses(table, "validation", one.convergence.final_val_loss);
  add_losses(table, "training", one.convergence.final_loss);
  return table;
}

Table differences_table(const Verification& one) {
  Table table{
      .title = "What differs between the sides", .header = {"setting", "base", "new"}, .rows = {}};
  for (const Difference& difference : one.differences) {
    const char* mark = difference.kind == DifferenceKind::kEnvironment ? " (environment)" : "";
    table.rows.push_back({difference.field + mark, difference.base, difference.fresh});
  }
  return table;
}

std::string scaled(const std::optional<double>& value, double unit) {
  return value ? fmt::format("{:.4g}", *value / unit) : "-";
}

Table top_table(const char* title, const SideProfile& side) {
  Table table{
      .title = title,
      .header = {"operation", "ms", "of step", "GFLOP/s", "GB/s", "bound", "of roof", "room, ms"},
      .rows = {}};
  for (const TopOperation& one : side.top)
    table.rows.push_back({one.name, ms(one.step_ms), report::percent_text(one.share_of_step),
                          scaled(one.flops_per_s, 1e9), scaled(one.bytes_per_s, 1e9),
                          one.bound.empty() ? "-" : one.bound,
                          one.share_of_roof ? report::percent_text(*one.share_of_roof) : "-",
                          scaled(one.room_ms, 1)});
  return table;
}

}  // namespace

std::vector<Table> verification_tables(const Verification& one) {
  std::vector<Table> tables = {blocks_table(one)};
  if (!one.parts.empty())
    tables.push_back(parts_table("What the change of the step is made of", one.parts, "step",
                                 EqualParts::kShown));
  if (one.convergence.final_loss) tables.push_back(losses_table(one));
  if (!one.differences.empty()) tables.push_back(differences_table(one));
  return tables;
}

std::vector<Table> profile_tables(const Profiles& profiles) {
  return {top_table("Longest operations of the base (a step of one rank)", profiles.base),
          top_table("Longest operations of the new side (a step of one rank)", profiles.fresh)};
}

std::vector<Table> trace_change_tables(const TraceChange& change) {
  if (change.parts.empty()) return {};
  const std::string basis = basis_of(change);
  std::vector<Table> tables = {
      parts_table("By the traces: a mean step of one rank", change.parts, "step")};
  if (!change.phases.empty())
    tables.push_back(parts_table("The same by phase", change.phases, "step"));
  tables.push_back(
      parts_table("The same by operation, the largest changes" + basis, change.operations, "step"));
  if (!change.collectives.empty())
    tables.push_back(
        parts_table("Exposed communication by bucket" + basis, change.collectives, "all"));
  return tables;
}

Table trials_table(const std::vector<Trial>& trials) {
  Table table{.title = "Tried before (the decision log)",
              .header = {"base against new", "accepted", "verdict", "why", "time"},
              .rows = {}};
  for (const Trial& one : trials)
    table.rows.push_back({one.base_flags + " against " + one.fresh_flags,
                          one.accepted ? "yes" : "no", one.verdict, one.reason, one.time});
  return table;
}

}  // namespace sidestream::verify
