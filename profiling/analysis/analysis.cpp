#include "profiling/analysis/analysis.hpp"

#include <utility>

#include "core/data/parallel_for.hpp"
#include "profiling/analysis/align.hpp"
#include "profiling/analysis/clock_faults.hpp"
#include "profiling/analysis/input_warnings.hpp"

namespace sidestream::analysis {
namespace {

std::vector<ClockFaults> all_clock_faults(const trace::TraceSet& set) {
  std::vector<ClockFaults> faults;
  for (const trace::RankTimeline& timeline : set.timelines)
    faults.push_back(clock_faults(timeline));
  return faults;
}

void ask_about_steps(const trace::TraceSet& set, Analysis& all) {
  StragglerSearch search = find_straggler(all.plain_ranks, all.matches);
  all.straggler = std::move(search.straggler);
  all.usually_last = search.usually_last;
  all.rotating_wait_ns = search.rotating_ns_per_step;
  all.verdict = find_verdict(all.ranks);
  all.system = find_system_use(all.plain_ranks);
  all.device_counters = device_counters(all.plain_ranks);
  all.hang = find_hang(set, all.ranks);
  all.outliers = find_outliers(all.ranks);
  all.model = model_use(all.ranks);
}

}  // namespace

Analysis analyse(trace::TraceSet& set, int threads) {
  Analysis all;
  all.set = &set;
  all.ranks = view_ranks(set, threads);
  all.matches = match_collectives(set);
  align_clocks(set, all.matches);
  all.plain_ranks = with_plain_steps_alone(all.ranks);
  all.operation_steps = operation_steps(all.plain_ranks);
  std::vector<ClockFaults> faults;
  data::parallel_tasks(threads,
                       {[&] { all.utilisation = find_utilisation(all.plain_ranks); },
                        [&] { faults = all_clock_faults(set); },
                        [&] { all.collectives = collective_table(all.plain_ranks, all.matches); },
                        [&] { all.tax = overlap_tax(all.ranks); },
                        [&] { all.operations = operations(all.plain_ranks, all.operation_steps); },
                        [&] { ask_about_steps(set, all); }});
  warn_about_input(set, all, faults);
  return all;
}

}  // namespace sidestream::analysis
