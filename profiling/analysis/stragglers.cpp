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
      statistics::judge_ranks(steps, static_cast<double>(upper_median(windows)));
  StragglerSearch search{.usually_last = judged.usually_last,
                         .rotating_ns_per_step = judged.rotating_ns_per_step};
  if (judged.late) {
    const statistics::LateRank& late = *judged.late;
    search.straggler = statistics::Straggler{late, cause_of_lateness(ranks, matches, late)};
  }
  return search;
}

}  // namespace sidestream::analysis
