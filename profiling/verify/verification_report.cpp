#include "profiling/verify/verification_report.hpp"

#include <fmt/format.h>

#include "profiling/report/wrap.hpp"

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
  return {part.name, ms(part.base_ms), ms(part.fresh_ms), fmt::format("{:+.4g}", part.change_ms())};
}

Table parts_table(const char* title, const std::vector<Part>& parts, const char* sum_name) {
  Table table{.title = title, .header = {"part", "base, ms", "new, ms", "change, ms"}, .rows = {}};
  Part sum{sum_name, 0, 0};
  for (const Part& part : parts) {
    table.rows.push_back(part_row(part));
    sum.base_ms += part.base_ms;
    sum.fresh_ms += part.fresh_ms;
  }
  table.rows.push_back(part_row(sum));
  return table;
}

void add_losses(Table& table, const char* name, const std::optional<LossDifference>& loss) {
  if (!loss) return;
  table.rows.push_back({name, fmt::format("{:.5f}", loss->base), fmt::format("{:.5f}", loss->fresh),
                        fmt::format("{:+.2g}", loss->difference),
                        fmt::format("{:+.2g} to {:+.2g}", loss->low, loss->high),
                        fmt::format("{:.2g}", loss->spread)});
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

std::string curve_text(const CurveComparison& curve) {
  return fmt::format(
      "Loss curves: {} points, {} equal to the bit, {:.0f} % within the spread of seeds; furthest "
      "apart at step {} ({:+.2g}, spread there {:.2g})",
      curve.points, curve.identical_points, curve.within_spread * 100, curve.largest_at_step,
      curve.largest_difference, curve.spread_there);
}

std::string memory_text(const MemoryPeak& memory) {
  return fmt::format("Peak memory of the first rank: {} against {} ({:+.1f} %)",
                     report::bytes_text(memory.fresh_bytes), report::bytes_text(memory.base_bytes),
                     (memory.fresh_bytes / memory.base_bytes - 1) * 100);
}

std::vector<std::string> sentences(const Verification& one, const Decision& decision) {
  std::vector<std::string> lines = {"Step time: " + verdict_sentence(one)};
  if (one.smallest_effect)
    lines.push_back(fmt::format(
        "A change of {:.1f} % or more would have been shown in 80 % of such verifications; for one "
        "of {:g} % {}",
        *one.smallest_effect * 100, kEffectAskedFor * 100,
        one.blocks_for_effect ? fmt::format("plan {} blocks", *one.blocks_for_effect)
                              : "more than 1000 blocks would be needed"));
  lines.push_back(fmt::format("Convergence: {} ({})", name_of(one.convergence.verdict),
                              one.convergence.reason));
  if (one.convergence.curve) lines.push_back(curve_text(*one.convergence.curve));
  lines.push_back(one.memory ? memory_text(*one.memory) : "Peak memory: not measured");
  lines.push_back(fmt::format("Decision: {} ({})", decision.accepted ? "accepted" : "not accepted",
                              decision.reason));
  return lines;
}

std::string markdown_of(const Table& table) {
  const auto row_of = [](const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& cell : cells) line += " " + cell + " |";
    return line + "\n";
  };
  std::string text = "### " + table.title + "\n\n" + row_of(table.header) + "|";
  for (std::size_t i = 0; i < table.header.size(); ++i) text += i == 0 ? "---|" : "--:|";
  text += "\n";
  for (const report::Row& row : table.rows) {
    std::vector<std::string> cells;
    for (const report::Cell& cell : row) cells.push_back(std::get<std::string>(cell));
    text += row_of(cells);
  }
  return text + "\n";
}

}  // namespace

std::vector<Table> verification_tables(const Verification& one) {
  std::vector<Table> tables = {blocks_table(one)};
  if (!one.parts.empty())
    tables.push_back(parts_table("What the change of the step is made of", one.parts, "step"));
  if (one.convergence.final_loss) tables.push_back(losses_table(one));
  if (!one.differences.empty()) tables.push_back(differences_table(one));
  return tables;
}

std::string verification_text(const Verification& one, const Decision& decision,
                              const report::TextStyle& style) {
  std::string text = report::wrapped("base: " + one.settings.base_flags, style.width_columns, 6) +
                     report::wrapped("new:  " + one.settings.fresh_flags, style.width_columns, 6) +
                     "\n";
  for (const std::string& line : sentences(one, decision))
    text += report::wrapped(line, style.width_columns, 2);
  for (const Table& table : verification_tables(one)) text += "\n" + report::text_of(table, style);
  return text;
}

std::string trace_change_text(const TraceChange& change, const report::TextStyle& style) {
  std::string text = fmt::format("Traces: {} and {} steps without tags, over all ranks\n\n",
                                 change.base_steps, change.fresh_steps);
  if (change.parts.empty()) return text;
  text +=
      report::text_of(parts_table("A mean step of one rank", change.parts, "step"), style) + "\n";
  text += report::text_of(
      parts_table("Operations, of a step of one rank", change.operations, "all"), style);
  if (change.collectives.empty()) return text;
  return text + "\n" +
         report::text_of(parts_table("Exposed communication by bucket", change.collectives, "all"),
                         style);
}

std::string verification_markdown(const Verification& one, const Decision& decision) {
  std::string text =
      fmt::format("# Base against new: {}\n\n- base: `{}`\n- new: `{}`\n\n", verdict_word(one),
                  one.settings.base_flags, one.settings.fresh_flags);
  for (const std::string& line : sentences(one, decision)) text += line + ".\n\n";
  for (const Table& table : verification_tables(one)) text += markdown_of(table);
  text += fmt::format("### How it was made\n\n```\n{}\n```\n\nSidestream {}", one.settings.command,
                      one.version);
  for (const auto& [name, value] : one.environment) text += fmt::format("; {} {}", name, value);
  return text + "\n";
}

}  // namespace sidestream::verify
