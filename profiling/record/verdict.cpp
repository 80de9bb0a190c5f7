#include "profiling/record/verdict.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "profiling/statistics/median.hpp"

namespace sidestream::record {
namespace {

using StepsOfRank = std::vector<StepTimes>;

// Steps that all ranks have kept, the same ones in the same places.
std::vector<StepsOfRank> common_steps(std::span<const RankAccount> ranks) {
  std::map<std::int64_t, std::size_t> kept;
  for (const RankAccount& rank : ranks) {
    for (const StepTimes& step : rank.newest) ++kept[step.number];
  }
  std::vector<StepsOfRank> common;
  for (const RankAccount& rank : ranks) {
    StepsOfRank& steps = common.emplace_back(rank.newest);
    std::erase_if(steps, [&](const StepTimes& step) { return kept[step.number] < ranks.size(); });
  }
  return common;
}

statistics::StepParts parts_of(const PhaseTotals& sum) {
  return {.window_ns = static_cast<double>(sum.window_ns),
          .io_ns = static_cast<double>(sum.io_ns),
          .comm_ns = static_cast<double>(sum.comm_ns),
          .compute_ns = static_cast<double>(sum.compute_ns)};
}

// Of all ranks together, step by step.
std::vector<statistics::StepParts> parts_of(const std::vector<StepsOfRank>& ranks) {
  std::vector<statistics::StepParts> steps;
  for (std::size_t step = 0; step < ranks.front().size(); ++step) {
    PhaseTotals sum;
    for (const StepsOfRank& rank : ranks) sum.add(rank[step]);
    steps.push_back(parts_of(sum));
  }
  return steps;
}

RankPhases means_of(int rank, const StepsOfRank& steps) {
  RankPhases means{.rank = rank};
  if (steps.empty()) return means;
  const double weight = 1e-6 / static_cast<double>(steps.size());
  for (const StepTimes& step : steps) {
    means.step_ms += weight * static_cast<double>(step.window_ns);
    means.comm_ms += weight * static_cast<double>(step.comm_ns);
    means.other_ms += weight * static_cast<double>(step.other_ns());
    for (std::size_t phase = 0; phase < ranges::kPhaseCount; ++phase)
      means.phase_ms[phase] += weight * static_cast<double>(step.phase_ns[phase]);
  }
  return means;
}

// How much longer one rank takes for something than the median of the others.
template <typename Time>
double excess_ms(const std::vector<RankPhases>& ranks, int rank, const Time& time) {
  std::vector<double> others;
  for (const RankPhases& one : ranks) {
    if (one.rank != rank) others.push_back(time(one));
  }
  return time(ranks[static_cast<std::size_t>(rank)]) - statistics::upper_median(others);
}

double compute_ms(const RankPhases& rank) {
  double sum_ms = 0;
  for (std::size_t phase = 0; phase < ranges::kPhaseCount; ++phase) {
    if (ranges::kPhases[phase].category == ranges::Category::kCompute)
      sum_ms += rank.phase_ms[phase];
  }
  return sum_ms;
}

// The phase that takes this rank longest beyond the others, where it explains half of the cost; all
// computing phases together, where they do and none alone.
std::string longer_phase(const std::vector<RankPhases>& ranks, const statistics::LateRank& late) {
  std::string name = statistics::kOtherWork;
  double longest_ms = excess_ms(ranks, late.rank, [](const auto& one) { return one.other_ms; });
  for (std::size_t phase = 0; phase < ranges::kPhaseCount; ++phase) {
    const double ms =
        excess_ms(ranks, late.rank, [&](const auto& one) { return one.phase_ms[phase]; });
    if (ms <= longest_ms) continue;
    longest_ms = ms;
    name = ranges::kPhases[phase].name;
  }
  const auto explains = [&](double ms) {
    return 2 * ms * 1e6 >= static_cast<double>(late.cost_ns_per_step);
  };
  if (explains(longest_ms)) return name;
  return explains(excess_ms(ranks, late.rank, compute_ms)) ? statistics::kComputing : "";
}

std::vector<statistics::StepWaits> waits_of(const std::vector<StepsOfRank>& ranks) {
  std::vector<statistics::StepWaits> waits(ranks.front().size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t step = 0; step < waits.size(); ++step)
      waits[step][static_cast<int>(rank)] = ranks[rank][step].comm_ns;
  }
  return waits;
}

void judge_ranks(const std::vector<StepsOfRank>& newest, RunVerdict& verdict) {
  const auto waits = waits_of(newest);
  if (newest.size() < 2 || waits.empty()) return;
  const statistics::RankJudgement judged =
      statistics::judge_ranks(waits, verdict.ranks[0].step_ms * 1e6);
  if (judged.late)
    verdict.straggler =
        statistics::Straggler{*judged.late, longer_phase(verdict.ranks, *judged.late)};
  verdict.usually_last = judged.usually_last;
  verdict.rotating_ns_per_step = judged.rotating_ns_per_step;
}

std::optional<ProcessorShortage> shortage_of(std::span<const RankAccount> ranks) {
  std::optional<ProcessorShortage> worst;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const double share = ranks[rank].processor_wait.value_or(0);
    if (share < kProcessorShortage || (worst && share <= worst->share)) continue;
    worst = {.rank = static_cast<int>(rank), .share = share};
  }
  return worst;
}

}  // namespace

std::optional<RunVerdict> find_verdict(std::span<const RankAccount> ranks) {
  PhaseTotals sum;
  RunVerdict verdict;
  for (const RankAccount& rank : ranks) {
    verdict.steps = std::max(verdict.steps, rank.totals.steps);
    verdict.uncounted_steps = std::max(verdict.uncounted_steps, rank.totals.uncounted_steps);
    sum.add(rank.totals);
  }
  if (!verdict.is_known())
    return verdict.uncounted_steps < kLeastStepsForVerdict ? std::nullopt : std::optional(verdict);
  const std::vector<StepsOfRank> newest = common_steps(ranks);
  verdict.newest_steps = static_cast<std::int64_t>(newest.front().size());
  const auto bound =
      statistics::find_bound(parts_of(sum), parts_of(newest), statistics::kOnProcessor);
  if (!bound) return std::nullopt;
  verdict.bound = *bound;
  for (std::size_t rank = 0; rank < newest.size(); ++rank)
    verdict.ranks.push_back(means_of(static_cast<int>(rank), newest[rank]));
  judge_ranks(newest, verdict);
  verdict.shortage = shortage_of(ranks);
  return verdict;
}

}  // namespace sidestream::record
