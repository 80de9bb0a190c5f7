#include "profiling/analysis/stragglers.hpp"

#include <algorithm>
#include <set>

#include "profiling/analysis/late_cause.hpp"
#include "profiling/analysis/step_waiting.hpp"
#include "profiling/statistics/late_rank.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::analysis {
namespace {

using statistics::StepWaits;
using statistics::upper_median;

// Waiting of the others in collectives where this rank came last, as a share of all waiting.
double caused_share(const CollectiveMatches& matches, int rank) {
  std::int64_t all = 0, caused = 0;
  for (const MatchedCollective& one : matches.matched) {
    std::int64_t waiting = 0;
    for (const CollectivePart& part : one.parts) waiting += part.duration_ns - one.transfer_ns;
    all += waiting;
    if (one.last().rank == rank) caused += waiting;
  }
  return all == 0 ? 0 : static_cast<double>(caused) / static_cast<double>(all);
}

bool lies_in_a_step(const std::vector<RankView>& ranks, const CollectivePart& part) {
  const RankView& rank = ranks[part.timeline];
  return rank.counts(part.row) && rank.step_at(part.start_ns) != nullptr;
}

// Between steps ranks wait for one that saves or evaluates: that is no slow rank.
CollectiveMatches inside_steps(const std::vector<RankView>& ranks, const CollectiveMatches& all) {
  CollectiveMatches inside;
  for (const MatchedCollective& one : all.matched) {
    if (lies_in_a_step(ranks, one.parts.front())) inside.matched.push_back(one);
  }
  return inside;
}

// Steps that all ranks have which any step has.
std::vector<StepWaits> complete_steps(const std::vector<RankView>& ranks,
                                      const CollectiveMatches& matches) {
  std::vector<StepWaits> steps;
  std::set<int> waiting;
  for (const StepWaiting& step : waiting_in_steps(ranks, matches)) {
    StepWaits& waits = steps.emplace_back();
    for (const auto& [rank, wait] : step.of_rank) {
      waits[rank] = wait.costly_ns;
      waiting.insert(rank);
    }
  }
  std::erase_if(steps, [&](const StepWaits& step) {
    return waiting.size() < 2 || step.size() < waiting.size();
  });
  return steps;
}

}  // namespace

StragglerSearch find_straggler(const std::vector<RankView>& ranks,
                               const CollectiveMatches& all_matches) {
  const CollectiveMatches matches = inside_steps(ranks, all_matches);
  const std::vector<StepWaits> steps = complete_steps(ranks, matches);
  if (steps.empty()) return {};
  std::vector<std::int64_t> windows;
  for (const StepRow* step : plain_steps(ranks)) windows.push_back(step->budget.window_ns);
  const statistics::RankJudgement judged =
      statistics::judge_ranks(steps, static_cast<double>(upper_median(windows)),
                              [&](int rank) { return caused_share(matches, rank); });
  StragglerSearch search{.usually_last = judged.usually_last,
                         .rotating_ns_per_step = judged.rotating_ns_per_step};
  if (judged.late) {
    const statistics::LateRank& late = *judged.late;
    search.straggler = statistics::Straggler{late, cause_of_lateness(ranks, matches, late)};
  }
  return search;
}

}  // namespace sidestream::analysis
