#include "profiling/report/text_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/base/real.hpp"
#include "profiling/analysis/verdict.hpp"
#include "profiling/report/shown_ranks.hpp"
#include "profiling/report/straggler_line.hpp"
#include "profiling/report/summary.hpp"
#include "profiling/report/urgent_lines.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::report {
namespace {

using analysis::Analysis;

constexpr std::size_t kShownOperations = 8;
constexpr std::size_t kShownCollectives = 8;

using core::real;

// What a run that hangs is looked at for comes before everything else.
std::string fault_text(const Analysis& all, std::size_t width) {
  std::string text;
  for (const std::string& line : fault_lines(all)) text += wrapped(line, width, 2);
  return text;
}

// A rank that certainly holds the others up is what to look at first.
std::string verdict_line(const Analysis& all) {
  const std::string late = late_rank_line(all);
  return "Verdict: " + (late.empty() ? "" : late + "; else ") + "bound by " +
         statistics::text_of(*all.verdict);
}

std::string own_late_text(const OwnVerdict& own) {
  if (own.late_ranks.empty()) return "";
  return fmt::format("; {} late, at {} a step to the others",
                     statistics::ranks_text(own.late_ranks), duration_text(own.late_cost_ns));
}

// Its own words are of all its steps, and of phases alone; the verdict here is of these traces.
std::string own_verdict_text(const RunMetrics& run, std::size_t width) {
  if (!run.verdict) return "";
  const OwnVerdict& own = *run.verdict;
  return wrapped(fmt::format("  at its end the run said of all its {} steps: compute {}, "
                             "communication {}, input {}, host {}{}",
                             own.steps, percent_text(own.compute), percent_text(own.comm),
                             percent_text(own.io), percent_text(own.cpu), own_late_text(own)),
                 width, 4);
}

std::string head(const Analysis& all, const RunMetrics& run, std::size_t width) {
  const trace::TraceSet& set = *all.set;
  std::string text =
      wrapped(fmt::format("{} file{}, {} event{}, {} of {} rank{}", set.files.size(),
                          set.files.size() == 1 ? "" : "s", set.events, set.events == 1 ? "" : "s",
                          set.ranks().size(), set.world_size, set.world_size == 1 ? "" : "s"),
              width, 2);
  text += fault_text(all, width);
  if (all.verdict) {
    const statistics::Bound& verdict = *all.verdict;
    text += wrapped(verdict_line(all), width, 2) +
            wrapped(fmt::format("  compute with copies {}, communication {}, input {}, host {} of "
                                "a step",
                                percent_text(verdict.compute), percent_text(verdict.comm),
                                percent_text(verdict.io), percent_text(verdict.cpu)),
                    width, 4);
  } else {
    text += wrapped("Verdict: not known, needs " + analysis::verdict_needs(all.ranks), width, 2);
  }
  return text + own_verdict_text(run, width);
}

std::string left_out_text(const MeanStep& mean) {
  std::string text;
  for (const auto& [tag, count] : mean.left_out)
    text += fmt::format("{}{} {}", text.empty() ? " (left out: " : ", ", count, tag);
  return text.empty() ? "" : text + ")";
}

Table budget_table(const MeanStep& mean, std::size_t ranks) {
  const std::string of_ranks = ranks < 2 ? "" : fmt::format(" of {} ranks together", ranks);
  Table table{.title = fmt::format("Mean of {} step{}{}{}", mean.steps, mean.steps == 1 ? "" : "s",
                                   of_ranks, left_out_text(mean)),
              .header = {"part", "time", "share"},
              .rows = {}};
  for (const StepPart& part : parts_of(mean)) {
    const bool cause = part.name.starts_with(' ');
    if (cause && part.time_ns == 0) continue;
    const double share = mean.window_ns == 0 ? 0 : real(part.time_ns) / real(mean.window_ns);
    table.rows.push_back({part.name, duration_text(real(part.time_ns)), percent_text(share)});
  }
  return table;
}

// A rank that is late waits least.
Table rank_table(const Analysis& all) {
  const std::map<int, RankMean> means = means_of_ranks(all);
  const auto shown = shown_ranks(
      means, [](const RankMean& mean) { return mean.waited_ns; }, "wait least and most");
  Table table{.title = "Ranks (of a step)" + shown.title,
              .header = {"rank", "steps", "step", "compute", "exposed comm", "idle", "waited",
                         "between steps"},
              .rows = {}};
  for (const auto& [rank, mean] : shown.rows) {
    table.rows.push_back({std::to_string(rank), mean.steps, duration_text(real(mean.window_ns)),
                          duration_text(real(mean.compute_ns)),
                          duration_text(real(mean.exposed_comm_ns)),
                          duration_text(real(mean.idle_ns)),
                          mean.waited_ns ? duration_text(real(*mean.waited_ns)) : "-",
                          mean.between_ns ? duration_text(real(*mean.between_ns)) : "-"});
  }
  return table;
}

std::string rate_or_dash(const std::optional<double>& per_s, const char* unit) {
  return per_s ? rate_text(*per_s, unit) : "-";
}

Table operation_table(const Analysis& all) {
  const analysis::OperationSteps& steps = all.operation_steps;
  const std::string which = steps.steps > 0
                                ? fmt::format(" (of {} steps{})", steps.steps,
                                              steps.profiled_only ? " that were profiled" : "")
                                : "";
  Table table{.title = "Longest operations" + which,
              .header = {"name", "calls", "total", "of step", "work", "traffic"},
              .rows = {}};
  const double all_steps_ns = stepped_ns(all);
  for (const analysis::Operation& one : all.operations) {
    if (table.rows.size() == kShownOperations) break;
    const auto share = step_share(one, all_steps_ns);
    table.rows.push_back(
        {one.name, one.calls, duration_text(real(one.total_ns)), share ? percent_text(*share) : "-",
         rate_or_dash(one.flops.per_s(), "FLOP/s"), rate_or_dash(one.bytes.per_s(), "B/s")});
  }
  return table;
}

Table collective_text_table(const Analysis& all) {
  const bool any_step = std::any_of(all.ranks.begin(), all.ranks.end(),
                                    [](const auto& rank) { return !rank.steps.empty(); });
  const std::string which =
      any_step ? "; exposed and hidden in the steps, the rest of the whole trace" : "";
  Table table{.title = "Collectives (of one rank" + which + "; bus = what the wires carry)",
              .header = {"name", "bucket", "size", "count", "exposed", "hidden", "transfer",
                         "waiting", "bus", "last"},
              .rows = {}};
  for (const analysis::CollectiveRow& row : all.collectives) {
    if (table.rows.size() == kShownCollectives) break;
    table.rows.push_back({row.name, row.bucket < 0 ? "-" : std::to_string(row.bucket),
                          row.bytes < 0 ? "-" : bytes_text(real(row.bytes)),
                          std::to_string(row.count), duration_text(real(row.exposed_ns)),
                          duration_text(real(row.overlapped_ns)),
                          row.transfer_ns ? duration_text(real(*row.transfer_ns)) : "-",
                          row.wait_ns ? duration_text(real(*row.wait_ns)) : "-",
                          row.bus_gb_per_s ? fmt::format("{:.3g} GB/s", *row.bus_gb_per_s) : "-",
                          row.slowest_rank ? std::to_string(*row.slowest_rank) : "-"});
  }
  return table;
}

// Else the counts of a table of buckets look as if a step were missing.
std::string sizes_text(const Analysis& all, std::size_t width) {
  if (!analysis::have_sizes_changed(all.collectives)) return "";
  return wrapped(
      "  A bucket has a row for each size that it had in these steps: the order of buckets is "
      "built "
      "anew after the first step of a run",
      width, 2);
}

std::string or_dash(const std::optional<double>& share) {
  return share ? percent_text(*share) : "-";
}

// Host ranks have no device to say anything about.
std::string device_text(const Analysis& all, std::size_t width) {
  const analysis::Utilisation& use = all.utilisation;
  const bool device =
      std::any_of(all.ranks.begin(), all.ranks.end(), [](const analysis::RankView& rank) {
        return rank.activity.where == analysis::Where::kDevice;
      });
  if (!device) return "";
  const std::string text = fmt::format(
      "GPU busy {}, SM efficiency {} (estimated), occupancy {} (estimated), Tensor Cores {}{}",
      or_dash(use.gpu_utilisation), or_dash(use.sm_efficiency), or_dash(use.occupancy),
      or_dash(use.tensor_core_share),
      use.tensor_core_source.empty() ? "" : " (by " + use.tensor_core_source + ")");
  return wrapped(text, width, 2);
}

Table counter_text_table(const analysis::DeviceCounterTable& counters) {
  const auto shown = shown_ranks(
      counters.of_ranks, [](const analysis::DeviceCounters& one) { return one.sm_active; },
      "have the least and the most active SMs");
  Table table{.title = "Counters of the GPUs (means of the samples inside of steps)" + shown.title,
              .header = {"rank", "samples", "SMs active", "Tensor Cores active", "DRAM read",
                         "DRAM written"},
              .rows = {}};
  for (const auto& [rank, one] : shown.rows)
    table.rows.push_back({std::to_string(rank), one.samples, or_dash(one.sm_active),
                          or_dash(one.tensor_active), or_dash(one.dram_read),
                          or_dash(one.dram_written)});
  return table;
}

std::string utilisation_text(const Throughput& found) {
  if (found.mfu)
    return fmt::format("MFU {} (PaLM's formula {}), of {}", or_dash(found.mfu),
                       or_dash(found.mfu_palm), found.source);
  return found.tokens_per_s
             ? "MFU not known: measure the machine with `sidestream bench ceilings` before the run"
             : "MFU not known: needs a run of `sidestream train`, which says its FLOPs";
}

std::string throughput_text(const Analysis& all, const RunMetrics& run, std::size_t width) {
  const Throughput found = throughput_of(all, run);
  std::string text;
  if (found.tokens_per_s)
    text += fmt::format("{:.0f} tokens/s{} of {}; ", *found.tokens_per_s,
                        run.tokens_per_s ? " (median of all steps)" : "", found.tokens_source);
  text += utilisation_text(found);
  if (all.system.joules_per_token)
    text += fmt::format("; {:.3g} J a token (GPUs)", *all.system.joules_per_token);
  return wrapped(text, width, 2);
}

// Of the whole run with all its starts, where only some steps of it are in the traces.
std::string wall_time_text(const RunMetrics& run, std::size_t width) {
  if (!run.ettr || run.wall_time.empty()) return "";
  std::string text = fmt::format("Effective training time {:.1f} % of {:.{}f} s", 100 * *run.ettr,
                                 run.wall_s, run.wall_s < 100 ? 1 : 0);
  for (const WallTimePart& part : run.wall_time) {
    if (part.key != "productive_s" && part.seconds >= 0.05)
      text += fmt::format(", {} {:.1f} s", part.name, part.seconds);
  }
  return wrapped(text, width, 2);
}

// Of the samples that a run may record.
std::string system_text(const Analysis& all, std::size_t width) {
  const analysis::SystemUse& use = all.system;
  if (!use.process_cores) return "";
  std::string text = fmt::format("A rank runs on {:.2g} processors", *use.process_cores);
  if (use.process_cores_short && *use.process_cores_short >= 0.05)
    text += fmt::format(" and is ready for {:.2g} more", *use.process_cores_short);
  if (use.machine_cpu)
    text += fmt::format(", those of the machine are busy {}", percent_text(*use.machine_cpu));
  if (use.disk_busy) text += fmt::format(", disk {} {}", use.disk, percent_text(*use.disk_busy));
  return wrapped(text + fmt::format(" ({} system samples)", use.samples), width, 2);
}

std::string cost_of_hiding(const analysis::OverlapTax& tax) {
  if (tax.judged_ns == 0) return "; what that costs its compute is not measured";
  if (tax.tax_ns == 0) return "; a cost to its compute: none measured";
  return fmt::format(" and costs its compute {}: net {}", duration_text(real(tax.tax_ns)),
                     duration_text(real(tax.net_gain_ns())));
}

std::string tax_text(const analysis::OverlapTax& tax, std::size_t width) {
  if (tax.hidden_ns == 0) return "";
  return wrapped(fmt::format("Overlap hides {} of a rank's communication{}",
                             duration_text(real(tax.hidden_ns)), cost_of_hiding(tax)),
                 width, 2);
}

// A run compares with more of them at its end, and may say another figure.
std::string steps_beside_text(const Analysis& all) {
  const std::int64_t steps = all.model.steps_without_profiler;
  return steps == 0 ? "those without the profiler"
                    : fmt::format("the {} without the profiler until it was written", steps);
}

std::string profiler_text(const Analysis& all, std::size_t width) {
  if (all.model.profiler_was_off)
    return wrapped("The profiler was off in the steps of this trace", width, 2);
  if (all.model.profiler_cost_below)
    return wrapped(fmt::format("What the profiler costs the steps of this trace is within their "
                               "scatter ({:.1f} %), compared with {}",
                               *all.model.profiler_cost_below * 100, steps_beside_text(all)),
                   width, 2);
  if (!all.model.profiler_cost) return "";
  return wrapped(fmt::format("Steps of this trace are {:.1f} % longer than {}",
                             *all.model.profiler_cost * 100, steps_beside_text(all)),
                 width, 2);
}

std::string straggler_text(const Analysis& all, std::size_t width) {
  const std::string line = straggler_line(all);
  return line.empty() ? "" : wrapped(line, width, 2);
}

// What the budget of a step does not have, of the rank that has most of it.
std::string between_text(const Analysis& all, std::size_t width) {
  constexpr double kWorthALine = 0.01;  // of a step
  int most_rank = 0;
  RankMean most;
  for (const auto& [rank, mean] : means_of_ranks(all)) {
    if (mean.between_ns.value_or(0) <= most.between_ns.value_or(0)) continue;
    most_rank = rank;
    most = mean;
  }
  if (!most.between_ns || real(*most.between_ns) < kWorthALine * real(most.window_ns)) return "";
  return wrapped(fmt::format("Between steps rank {} spends {} a step, which no step contains",
                             most_rank, duration_text(real(*most.between_ns))),
                 width, 2);
}

std::string clock_text(const Analysis& all, std::size_t width) {
  const trace::ClockModel& clock = all.set->clock;
  if (all.set->ranks().size() < 2) return "";
  std::string text = "Clocks: " + clock.method;
  if (clock.has_residual)
    text += fmt::format(", ends of collectives within {} (median), {} (95 %)",
                        duration_text(clock.residual_us_p50 * 1000),
                        duration_text(clock.residual_us_p95 * 1000));
  return wrapped(text, width, 2);
}

std::string remarks(const Analysis& all, std::size_t width) {
  std::string text;
  for (const std::string& warning : all.set->warnings)
    text += wrapped("warning: " + warning, width, 2);
  for (const auto& [reason, count] : skipped_events(*all.set))
    text += wrapped(fmt::format("left out: {} event{} ({})", count, count == 1 ? "" : "s", reason),
                    width, 2);
  return text;
}

}  // namespace

std::string text_report(const Analysis& all, const RunMetrics& run, const TextStyle& style) {
  const std::size_t width = style.width_columns;
  std::string text = head(all, run, width) + "\n";
  const MeanStep mean = mean_step(all.ranks);
  if (mean.steps > 0) text += text_of(budget_table(mean, all.set->ranks().size()), style) + "\n";
  if (all.ranks.size() > 1) text += text_of(rank_table(all), style) + "\n";
  if (!all.operations.empty()) text += text_of(operation_table(all), style) + "\n";
  if (!all.collectives.empty())
    text += text_of(collective_text_table(all), style) + sizes_text(all, width) + "\n";
  if (!all.device_counters.of_ranks.empty())
    text += text_of(counter_text_table(all.device_counters), style) + "\n";
  text += device_text(all, width) + system_text(all, width) + throughput_text(all, run, width) +
          wall_time_text(run, width) + profiler_text(all, width) + tax_text(all.tax, width) +
          between_text(all, width) + straggler_text(all, width) + clock_text(all, width);
  return text + remarks(all, width);
}

}  // namespace sidestream::report
