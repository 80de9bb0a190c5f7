#include "profiling/record/verdict_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace sidestream::record {
namespace {

// Of more ranks the table shows those that differ most.
constexpr std::size_t kMostRows = 16;

std::string bound_line(const RunVerdict& verdict) {
  const statistics::Bound& bound = verdict.bound;
  const auto percent = [](double share) { return std::lround(share * 100); };
  return fmt::format(
      "time of a step, mean of {}: computing {} %, communication {} %, waiting for data {} %, "
      "other work of the host {} %: bound by {}",
      verdict.steps - static_cast<std::int64_t>(verdict.outliers.size()), percent(bound.compute),
      percent(bound.comm), percent(bound.io), percent(bound.cpu), statistics::text_of(bound));
}

struct Column {
  std::string name;
  std::function<double(const RankPhases&)> ms;
};

// Phases in the order of a step; those that no rank has are left out.
std::vector<Column> columns_of(const std::vector<RankPhases>& ranks) {
  std::vector<Column> columns = {{"step", [](const auto& rank) { return rank.step_ms; }}};
  for (std::size_t phase = 0; phase < ranges::kPhaseCount; ++phase) {
    const auto ms = [phase](const RankPhases& rank) { return rank.phase_ms[phase]; };
    if (std::ranges::any_of(ranks, [&](const auto& rank) { return ms(rank) > 0; }))
      columns.push_back({ranges::kPhases[phase].name, ms});
  }
  columns.push_back({"collectives", [](const auto& rank) { return rank.comm_ms; }});
  columns.push_back({statistics::kOtherWork, [](const auto& rank) { return rank.other_ms; }});
  return columns;
}

// All of a few; of many those that wait least and most: the late ones and what they cost.
std::vector<RankPhases> rows_of(const std::vector<RankPhases>& ranks) {
  if (ranks.size() <= kMostRows) return ranks;
  std::vector<RankPhases> rows = ranks;
  std::ranges::stable_sort(rows, {}, &RankPhases::comm_ms);
  rows.erase(rows.begin() + kMostRows / 2, rows.end() - kMostRows / 2);
  return rows;
}

void append_table(const RunVerdict& verdict, std::vector<std::string>& lines) {
  const std::vector<Column> columns = columns_of(verdict.ranks);
  const std::vector<RankPhases> rows = rows_of(verdict.ranks);
  const std::string which =
      rows.size() == verdict.ranks.size()
          ? ""
          : fmt::format(", the {} of {} ranks that wait least and most in collectives", rows.size(),
                        verdict.ranks.size());
  lines.push_back(
      fmt::format("by rank, ms, mean of the newest {} steps{}:", verdict.newest_steps, which));
  std::string head = fmt::format("{:>6}", "rank");
  for (const Column& column : columns) head += fmt::format("  {:>9}", column.name);
  lines.push_back(std::move(head));
  for (const RankPhases& row : rows) {
    std::string line = fmt::format("{:>6}", row.rank);
    for (const Column& column : columns)
      line +=
          fmt::format("  {:>{}.3f}", column.ms(row), std::max<std::size_t>(9, column.name.size()));
    lines.push_back(std::move(line));
  }
}

std::string uncounted_line(const RunVerdict& verdict) {
  return fmt::format(
      "{} steps are left out: they have more phases or collectives than are kept of a step",
      verdict.uncounted_steps);
}

std::string outlier_line(const statistics::Outlier& one) {
  return fmt::format("in no mean: step {}, which took {:.3f} s, {:.0f} times the median: rank {}{}",
                     one.step, static_cast<double>(one.length_ns) * 1e-9, one.medians, one.rank,
                     one.phase.empty() ? "" : " " + statistics::phase_text(one.phase));
}

// The longest first; a run on a busy machine has dozens.
void append_outliers(std::vector<statistics::Outlier> outliers, std::vector<std::string>& lines) {
  constexpr std::size_t kMostLines = 3;
  std::ranges::sort(outliers, std::greater(), &statistics::Outlier::length_ns);
  const std::size_t told = std::min(outliers.size(), kMostLines);
  for (std::size_t i = 0; i < told; ++i) lines.push_back(outlier_line(outliers[i]));
  if (outliers.size() > told)
    lines.push_back(
        fmt::format("in no mean: {} more, see `verdict` in run.json", outliers.size() - told));
}

std::string shortage_line(const ProcessorShortage& shortage) {
  return fmt::format(
      "rank {} waited for a processor in {} % of the time that it wanted one: other programs have "
      "them, or there are more threads than processors: `sidestream doctor` says which",
      shortage.rank, std::lround(shortage.share * 100));
}

std::string straggler_line(const RunVerdict& verdict) {
  if (verdict.straggler) {
    const statistics::Straggler& late = *verdict.straggler;
    const std::string phase =
        late.phase.empty() ? "in no phase of its own" : statistics::phase_text(late.phase);
    return fmt::format(
        "straggler{}: {}, {}: cost{} the others {:.3f} ms a step (95 %: {:.3f} to {:.3f}), last "
        "in {} of {} steps",
        late.also.empty() ? "" : "s", statistics::ranks_text(late), phase,
        late.also.empty() ? "s" : "", static_cast<double>(late.cost_ns_per_step) * 1e-6,
        static_cast<double>(late.cost_low_ns.value_or(0)) * 1e-6,
        static_cast<double>(late.cost_high_ns.value_or(0)) * 1e-6, late.steps_last, late.steps);
  }
  if (verdict.usually_last) {
    const statistics::UsuallyLast& usual = *verdict.usually_last;
    return fmt::format(
        "no sure straggler: rank {} is last in {} of {} steps, at {:.3f} ms a step by the median; "
        "a few steps scatter too much for an interval",
        usual.rank, usual.steps_last, usual.steps,
        static_cast<double>(usual.median_cost_ns) * 1e-6);
  }
  if (verdict.rotating_ns_per_step) {
    return fmt::format(
        "no sure straggler: the last rank changes from step to step, or chance may explain it; "
        "those that wait for it lose {:.3f} ms a step",
        static_cast<double>(*verdict.rotating_ns_per_step) * 1e-6);
  }
  return "no straggler";
}

}  // namespace

std::vector<std::string> lines_of(const RunVerdict& verdict) {
  std::vector<std::string> lines;
  if (!verdict.is_known()) return {"no verdict: " + uncounted_line(verdict)};
  if (verdict.straggler) lines.push_back(straggler_line(verdict));
  lines.push_back(bound_line(verdict));
  if (verdict.rank_alone)
    lines.back() = fmt::format("rank {} alone: {}", *verdict.rank_alone, lines.back());
  append_outliers(verdict.outliers, lines);
  if (verdict.shortage) lines.push_back(shortage_line(*verdict.shortage));
  if (verdict.uncounted_steps > 0) lines.push_back(uncounted_line(verdict));
  if (verdict.newest_steps == 0) return lines;
  append_table(verdict, lines);
  if (verdict.ranks.size() > 1 && !verdict.straggler) lines.push_back(straggler_line(verdict));
  return lines;
}

}  // namespace sidestream::record
