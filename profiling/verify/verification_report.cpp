#include "profiling/verify/verification_report.hpp"

#include <fmt/format.h>

#include "profiling/report/wrap.hpp"
#include "profiling/verify/how_made.hpp"
#include "profiling/verify/input_proof.hpp"
#include "profiling/verify/remarks.hpp"
#include "profiling/verify/verification_tables.hpp"

namespace sidestream::verify {
namespace {

using report::Table;

std::string curve_text(const CurveComparison& curve) {
  if (curve.seeds < 2)
    return fmt::format(
        "Loss curves: {} points, {} equal to the bit; furthest apart at step {} ({:+.2g}; one pair "
        "has no spread of seeds)",
        curve.points, curve.identical_points, curve.largest_at_step, curve.largest_difference);
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

std::string clocks_text(const std::optional<MachineChange>& change) {
  if (!change || !change->ratio())
    return "Clocks: not measured (no cpufreq, no busy GPU with NVML)";
  const std::string warning = clock_warning(*change);
  std::string text = warning.empty() ? fmt::format("Clocks: the same on both sides within {:g} %",
                                                   kClockChange * 100)
                                     : "Clocks: " + warning + ", which is in the ratio";
  const auto &base = change->base.gpu_held_down, &fresh = change->fresh.gpu_held_down;
  if (base && fresh && *base + *fresh > 0)
    text += fmt::format("; held down by power or heat in {} of the base and {} of the new runs",
                        report::percent_text(*base), report::percent_text(*fresh));
  return text;
}

std::string load_text(const std::optional<MachineChange>& change) {
  if (!change || !change->base.foreign_cpu || !change->fresh.foreign_cpu)
    return "Load of others: not measured";
  const std::string warning = load_warning(*change);
  if (warning.empty())
    return fmt::format("Load of others: below {:g} % of the processors on both sides",
                       kForeignLoad * 100);
  return "Load of others: " + warning + "; a quiet machine needs fewer blocks";
}

// Timed and profiled steps are different runs: what they differ by is said, not hidden. Recorded
// steps are those that were timed, without a profiler.
std::string profiled_text(const Verification& one) {
  const double base = one.profiles->base.step_ms, fresh = one.profiles->fresh.step_ms;
  const double timed = one.fresh_ms - one.base_ms, traced = fresh - base;
  if (one.base_curves.empty())  // the same steps twice
    return fmt::format(
        "The traces: a mean step takes {:.4g} against {:.4g} ms, {:+.4g} ms; by the medians of the "
        "same steps it is {:+.4g} ms",
        fresh, base, traced, timed);
  if (one.profiles->base.profiler_off && one.profiles->fresh.profiler_off)
    return fmt::format(
        "The recordings (no profiler): a mean step takes {:.4g} against {:.4g} ms, {:+.4g} ms; by "
        "the medians of metrics.jsonl it is {:+.4g} ms: a mean holds the long steps, too",
        fresh, base, traced, timed);
  return fmt::format(
      "Profiled runs: a step takes {:.4g} against {:.4g} ms, {:+.4g} ms; the timed blocks say "
      "{:+.4g} ms, and the {:+.4g} ms between are the profiler's cost and scatter",
      fresh, base, traced, timed, traced - timed);
}

// The step of each side, with its interval where there are blocks enough.
std::string sides_text(const Verification& one) {
  const auto side = [](const char* name, double median_ms, const auto& interval_ms) {
    const std::string interval = interval_text(interval_ms);
    return fmt::format(
        "{} {:.4g} ms{}", name, median_ms,
        interval.empty() ? "" : " (95 % interval of the geometric mean " + interval + ")");
  };
  return "Step of each side (median over the blocks): " +
         side("base", one.base_ms, one.base_interval_ms) + ", " +
         side("new", one.fresh_ms, one.fresh_interval_ms);
}

std::vector<std::string> sentences(const Verification& one, const Decision& decision) {
  std::vector<std::string> lines = {"Step time: " + verdict_sentence(one), sides_text(one)};
  if (one.step_time) lines.push_back("Speed-up: " + speed_up_text(one));
  if (one.smallest_effect)
    lines.push_back(fmt::format(
        "Resolution: with the scatter of these {} blocks, 80 % of such verifications "
        "show a change by "
        "{}; for one of {:g} % {}",
        one.blocks.size(), least_effect_text(*one.smallest_effect), kEffectAskedFor * 100,
        one.blocks_for_effect ? fmt::format("plan {} blocks", *one.blocks_for_effect)
                              : "more than 1000 blocks would be needed"));
  lines.push_back(fmt::format("Convergence: {} ({})", name_of(one.convergence.verdict),
                              one.convergence.reason));
  if (one.convergence.curve) lines.push_back(curve_text(*one.convergence.curve));
  lines.push_back(one.memory ? memory_text(*one.memory) : "Peak memory: not measured");
  lines.push_back(clocks_text(one.machine));
  lines.push_back(load_text(one.machine));
  if (one.profiles) {
    const std::string remark = trace_remark(one);
    lines.push_back(profiled_text(one) + (remark.empty() ? "" : ". " + remark));
  } else if (!one.profiles_missing.empty()) {
    lines.push_back("Profiled runs: none, " + one.profiles_missing);
  }
  if (one.proof) lines.push_back(proof_sentence(*one.proof));
  lines.push_back(fmt::format("Decision: {} ({})", decision.accepted ? "accepted" : "not accepted",
                              decision.reason));
  return lines;
}

std::string markdown_of(const Table& table) {
  const auto row_of = [](const std::vector<std::string>& cells) {
    std::string line = "|";
    for (std::string cell : cells) {
      for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2)
        cell.insert(at, "\\");
      line += " " + cell + " |";
    }
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

// What is urgent before what bounds a side: means say little beside a rank that is late.
std::string bound_text(const SideProfile& side) {
  std::string text;
  for (const std::string& line : side.urgent) text += line + "; ";
  return text + "bound by " + (side.verdict.empty() ? "(not measured)" : side.verdict);
}

std::string advice_line(const AdviceLine& one) {
  std::string line = fmt::format(
      "- {}: {}{}", one.title,
      one.bound_pct ? fmt::format("at most {:.1f} %", *one.bound_pct) : "bound not known",
      one.comes_first ? "; first, for what else is found may follow from it" : "");
  const std::initializer_list<std::pair<const char*, const std::string&>> parts = {
      {"Why", one.evidence}, {"Fix", one.fix}, {"False if", one.false_if}, {"Check", one.check}};
  for (const auto& [name, text] : parts) {
    if (!text.empty()) line += fmt::format(". {}: {}", name, text);
  }
  return line;
}

// What bounds a side, what its step is made of, and what was advised.
std::vector<std::string> side_lines(const char* name, const SideProfile& side) {
  std::string budget;
  for (const BudgetPart& part : side.budget) {
    const bool whole = part.name == "step" || part.name.starts_with("(");
    if (whole || part.name.starts_with(" ") || side.step_ms <= 0) continue;
    budget += fmt::format("{}{} {}", budget.empty() ? "" : ", ", part.name,
                          report::percent_text(part.step_ms / side.step_ms));
  }
  std::vector<std::string> lines = {
      fmt::format("What takes the time of the {} side: {}; profiled step {:.4g} ms: {}", name,
                  bound_text(side), side.step_ms, budget)};
  for (const AdviceLine& one : side.advice) lines.push_back(advice_line(one));
  if (side.advice.empty())
    lines.emplace_back("- advice: nothing found by the rules that could look");
  return lines;
}

std::vector<std::string> cause_lines(const SideProfile& side) {
  std::vector<std::string> lines;
  for (const TopOperation& one : side.top)
    lines.push_back(fmt::format("{}. {}: {}", lines.size() + 1, one.name,
                                one.cause.empty() ? "cause not measured" : one.cause));
  if (!side.has_roofs)
    lines.emplace_back(
        "Roofs are not known: `sidestream bench ceilings` measures, once, what this machine "
        "reaches; the same verification then says how far each operation is from it");
  return lines;
}

std::string side_markdown(const char* title, const char* name, const SideProfile& side,
                          const Table& top) {
  std::string text = fmt::format("## {}\n\n", title);
  const std::vector<std::string> lines = side_lines(name, side);
  text += lines.front() + ".\n\nAdvised (bounds, no promises):\n\n";
  for (std::size_t i = 1; i < lines.size(); ++i) text += lines[i] + "\n";
  text += "\n" + markdown_of(top);
  for (const std::string& line : cause_lines(side)) text += line + "\n";
  return text + fmt::format("\nTraces and the whole report: `{}`\n\n", side.folder);
}

std::string side_text(const char* name, const SideProfile& side, const Table& top,
                      const report::TextStyle& style) {
  std::string text = "\n";
  for (const std::string& line : side_lines(name, side))
    text += report::wrapped(line, style.width_columns, 2);
  text += "\n" + report::text_of(top, style);
  for (const std::string& line : cause_lines(side))
    text += report::wrapped(line, style.width_columns, 3);
  return text;
}

std::string profiles_text(const Profiles& profiles, const report::TextStyle& style) {
  const std::vector<Table> top = profile_tables(profiles);
  std::string text = side_text("base", profiles.base, top.front(), style) +
                     side_text("new", profiles.fresh, top.back(), style);
  for (const Table& table : trace_change_tables(profiles.change))
    text += "\n" + report::text_of(table, style);
  return text;
}

std::string profiles_markdown(const Profiles& profiles) {
  const std::vector<Table> top = profile_tables(profiles);
  return side_markdown("What was slow: the base", "base", profiles.base, top.front()) +
         side_markdown("What is left: the new side", "new", profiles.fresh, top.back());
}

std::string trials_markdown(const Verification& one) {
  std::string text = "## Tried and dropped\n\n";
  if (one.trials.empty())
    return text +
           "Nothing else is in the decision log (--log: beside the output folder unless told "
           "otherwise).\n\n";
  return text + markdown_of(trials_table(one.trials));
}

// A paragraph a trial: its sentences are too long for the columns of a table on a terminal.
std::string trials_text(const Verification& one, std::size_t width_columns) {
  if (one.trials.empty()) return "";
  const Table table = trials_table(one.trials);
  std::string text = "\n" + table.title + "\n";
  for (const report::Row& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string name = i == 0 ? "- " : "  " + table.header[i] + ": ";
      text += report::wrapped(name + std::get<std::string>(row[i]), width_columns, 4);
    }
  }
  return text;
}

HowMade how_made(const Verification& one) {
  HowMade how{
      .commands = {one.settings.command}, .version = one.version, .environment = one.environment};
  how.commands.insert(how.commands.end(), one.commands.begin(), one.commands.end());
  return how;
}

}  // namespace

std::string speed_up_text(const Verification& one) {
  if (!one.step_time) return "";
  const RatioEstimate& ratio = *one.step_time;
  if (!has_usable_interval(ratio))
    return fmt::format("{:.3g}x (no usable interval)", 1 / ratio.ratio);
  return fmt::format("{:.3g}x (95 % interval {:.3g} to {:.3g}x)", 1 / ratio.ratio, 1 / ratio.high,
                     1 / ratio.low);
}

std::string verification_text(const Verification& one, const Decision& decision,
                              const report::TextStyle& style) {
  std::string text = report::wrapped("base: " + one.settings.base_flags, style.width_columns, 6) +
                     report::wrapped("new:  " + one.settings.fresh_flags, style.width_columns, 6) +
                     "\n";
  for (const std::string& line : sentences(one, decision))
    text += report::wrapped(line, style.width_columns, 2);
  for (const Table& table : verification_tables(one)) text += "\n" + report::text_of(table, style);
  if (one.profiles) text += profiles_text(*one.profiles, style);
  return text + trials_text(one, style.width_columns) + "\n" +
         text_of(how_made(one), style.width_columns);
}

std::string verification_markdown(const Verification& one, const Decision& decision) {
  std::string text =
      fmt::format("# Base against new: {}\n\n- base: `{}`\n- new: `{}`\n\n", verdict_word(one),
                  one.settings.base_flags, one.settings.fresh_flags);
  for (const std::string& line : sentences(one, decision)) text += line + ".\n\n";
  if (one.profiles) text += profiles_markdown(*one.profiles);
  text += "## What changed, and the proof\n\n";
  for (const Table& table : verification_tables(one)) text += markdown_of(table);
  if (one.profiles) {
    for (const Table& table : trace_change_tables(one.profiles->change)) text += markdown_of(table);
  }
  text += trials_markdown(one);
  return text + markdown_of(how_made(one));
}

}  // namespace sidestream::verify
