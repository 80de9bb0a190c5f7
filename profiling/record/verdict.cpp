#include "profiling/record/verdict.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "profiling/statistics/median.hpp"

namespace sidestream::record {
namespace {

constexpr double kLeastShareOfStep = 0.02;
constexpr double kLeastShareOfCosts = 0.6;

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

struct Share {
  double value;
  const char* word;
};

// The largest first; the first of equals.
std::array<Share, 4> shares_of(const PhaseTotals& sum) {
  const auto share = [&](std::int64_t part_ns) {
    return static_cast<double>(part_ns) / static_cast<double>(sum.window_ns);
  };
  std::array<Share, 4> shares = {{{share(sum.compute_ns), "gpu"},
                                  {share(sum.comm_ns), "comm"},
                                  {share(sum.io_ns), "io"},
                                  {share(sum.other_ns()), "cpu"}}};
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.value > b.value; });
  return shares;
}

double share_named(const std::array<Share, 4>& shares, const std::string& word) {
  return std::find_if(shares.begin(), shares.end(),
                      [&](const Share& share) { return share.word == word; })
      ->value;
}

std::optional<statistics::Interval> lead_of(const Bound& bound,
                                            const std::vector<StepsOfRank>& ranks) {
  std::vector<double> leads;
  for (std::size_t step = 0; step < ranks.front().size(); ++step) {
    PhaseTotals sum;
    for (const StepsOfRank& rank : ranks) sum.add(rank[step]);
    const auto shares = shares_of(sum);
    leads.push_back(share_named(shares, bound.word) - share_named(shares, bound.runner_up));
  }
  return statistics::mean_interval(leads);
}

Bound bound_of(const PhaseTotals& sum, const std::vector<StepsOfRank>& newest) {
  const auto shares = shares_of(sum);
  Bound bound{.word = shares[0].word,
              .runner_up = shares[1].word,
              .io = share_named(shares, "io"),
              .cpu = share_named(shares, "cpu"),
              .gpu = share_named(shares, "gpu"),
              .comm = share_named(shares, "comm")};
  bound.lead = lead_of(bound, newest);
  return bound;
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

// The phase that takes this rank longest beyond the others, where it explains half of the cost.
std::string longer_phase(const std::vector<RankPhases>& ranks, const statistics::LateRank& late) {
  std::string name = kOtherWork;
  double longest_ms = excess_ms(ranks, late.rank, [](const auto& one) { return one.other_ms; });
  for (std::size_t phase = 0; phase < ranges::kPhaseCount; ++phase) {
    const double ms =
        excess_ms(ranks, late.rank, [&](const auto& one) { return one.phase_ms[phase]; });
    if (ms <= longest_ms) continue;
    longest_ms = ms;
    name = ranges::kPhases[phase].name;
  }
  return 2 * longest_ms * 1e6 >= static_cast<double>(late.cost_ns_per_step) ? name : "";
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
  const auto matters = [&](std::int64_t cost_ns) {
    return static_cast<double>(cost_ns) * 1e-6 >= kLeastShareOfStep * verdict.ranks[0].step_ms;
  };
  const statistics::LateRank late = statistics::least_waiting_rank(waits);
  if (matters(late.cost_ns_per_step) && !late.may_be_chance() &&
      statistics::share_of_costs(waits, late.rank) >= kLeastShareOfCosts) {
    verdict.straggler = RunStraggler{late, longer_phase(verdict.ranks, late)};
    return;
  }
  const std::int64_t rotating_ns = statistics::cost_of_last_ranks(waits);
  if (matters(rotating_ns)) verdict.rotating_ns_per_step = rotating_ns;
}

}  // namespace

std::optional<RunVerdict> find_verdict(std::span<const RankAccount> ranks) {
  PhaseTotals sum;
  RunVerdict verdict;
  for (const RankAccount& rank : ranks) {
    verdict.steps = std::max(verdict.steps, rank.totals.steps);
    sum.add(rank.totals);
  }
  if (verdict.steps < kLeastStepsForVerdict || sum.window_ns <= 0) return std::nullopt;
  const std::vector<StepsOfRank> newest = common_steps(ranks);
  verdict.newest_steps = static_cast<std::int64_t>(newest.front().size());
  verdict.bound = bound_of(sum, newest);
  for (std::size_t rank = 0; rank < newest.size(); ++rank)
    verdict.ranks.push_back(means_of(static_cast<int>(rank), newest[rank]));
  judge_ranks(newest, verdict);
  return verdict;
}

}  // namespace sidestream::record
