#include "profiling/analysis/stragglers.hpp"

#include <algorithm>
#include <set>

#include "profiling/analysis/phase_times.hpp"
#include "profiling/analysis/step_gaps.hpp"
#include "profiling/analysis/step_waiting.hpp"
#include "profiling/ranges/phases.hpp"
#include "profiling/statistics/late_rank.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::analysis {
namespace {

using statistics::kOtherWork;
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

struct LongerPhase {
  std::string name = {};
  std::int64_t excess_ns = 0;
};

std::int64_t other_work_ns(const RankView& rank) {
  std::int64_t sum_ns = 0;
  for (const StepRow& step : rank.steps) {
    if (!step.is_singular()) sum_ns += step.idle.host_ns + step.idle.other_ns;
  }
  return sum_ns;
}

// The phase in which this rank exceeds the median of the others most. A phase that the others do
// not have takes them no time.
LongerPhase longer_phase(const std::vector<RankView>& ranks, int rank) {
  std::map<int, std::map<std::string, std::int64_t>> of_rank;  // over its files
  for (const RankView& one : ranks) {
    auto& phases = of_rank[one.timeline->info.rank];
    for (const auto& [phase, time_ns] : phase_times(one)) phases[phase] += time_ns;
    phases[kBetweenSteps] += step_gaps(one).unnamed_ns;
    if (one.activity.where == Where::kHost) phases[kOtherWork] += other_work_ns(one);
  }
  const std::map<std::string, std::int64_t> own = of_rank[rank];
  std::map<std::string, std::vector<std::int64_t>> others;
  for (auto& [other, phases] : of_rank) {
    if (other == rank) continue;
    for (const auto& [phase, time_ns] : own) others[phase].push_back(phases[phase]);
  }
  LongerPhase longest;
  for (const auto& [phase, time_ns] : own) {
    const std::int64_t excess_ns = time_ns - upper_median(others[phase]);
    if (excess_ns > longest.excess_ns) longest = {phase, excess_ns};
  }
  return longest;
}

// The kind of collective to which this rank came late at the highest cost to the others.
std::string late_to(const CollectiveMatches& matches, int rank) {
  std::map<std::string, std::int64_t> caused;
  for (const MatchedCollective& one : matches.matched) {
    if (one.last().rank != rank) continue;
    for (const CollectivePart& part : one.parts)
      caused[one.kernel] += part.duration_ns - one.transfer_ns;
  }
  const auto most =
      std::max_element(caused.begin(), caused.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == caused.end() ? "" : most->first;
}

// No phase of this rank explains half of what it costs: it is late to collectives by itself, not
// because of what it did before. A thread that waits for a collective of its own that has not begun
// looks as if it did other work; to a barrier it comes by itself.
std::string phase_of(const std::vector<RankView>& ranks, const CollectiveMatches& matches, int rank,
                     std::int64_t cost_ns) {
  const LongerPhase longer = longer_phase(ranks, rank);
  const bool explains = 2 * longer.excess_ns >= cost_ns;
  if (longer.name.empty() || (explains && longer.name != kOtherWork)) return longer.name;
  const std::string late = late_to(matches, rank);
  const bool by_itself = late.empty() || late == ranges::name_of(ranges::Phase::kBarrier);
  return explains && by_itself ? kOtherWork : late;
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
  StragglerSearch search{.rotating_ns_per_step = judged.rotating_ns_per_step};
  if (judged.late) {
    const statistics::LateRank& late = *judged.late;
    search.straggler = statistics::Straggler{
        late, phase_of(ranks, matches, late.rank, late.cost_ns_per_step * late.steps)};
  }
  return search;
}

}  // namespace sidestream::analysis
