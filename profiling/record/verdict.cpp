#include "profiling/record/verdict.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "profiling/record/phase_history.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::record {
namespace {

using StepsOfRank = std::vector<StepTimes>;

std::int64_t length_at(const std::vector<StepsOfRank>& ranks, std::size_t place) {
  std::int64_t longest_ns = 0;
  for (const StepsOfRank& rank : ranks) longest_ns = std::max(longest_ns, rank[place].window_ns);
  return longest_ns;
}

// Steps that all ranks have kept, the same ones in the same places.
std::vector<StepsOfRank> common_steps(std::span<const RankAccount> ranks,
                                      std::vector<StepTimes> RankAccount::*kept) {
  std::map<std::int64_t, std::size_t> count;
  for (const RankAccount& rank : ranks) {
    for (const StepTimes& step : rank.*kept) ++count[step.number];
  }
  std::vector<StepsOfRank> common;
  for (const RankAccount& rank : ranks) {
    StepsOfRank& steps = common.emplace_back(rank.*kept);
    std::erase_if(steps, [&](const StepTimes& step) { return count[step.number] < ranks.size(); });
    std::ranges::sort(steps, {}, &StepTimes::number);
  }
  return common;
}

// The rank that waits least keeps the others; the phase that took half of its step says by what.
statistics::Outlier outlier_at(const std::vector<StepsOfRank>& ranks, std::size_t place,
                               double median_ns) {
  const auto waited = [&](const StepsOfRank& rank) { return rank[place].comm_ns; };
  const auto late = std::ranges::min_element(ranks, {}, waited);
  const StepTimes& step = (*late)[place];
  const auto longest = std::ranges::max_element(step.phase_ns);
  const auto phase = static_cast<std::size_t>(longest - step.phase_ns.begin());
  const std::int64_t length_ns = length_at(ranks, place);
  return {.step = step.step,
          .length_ns = length_ns,
          .medians = static_cast<double>(length_ns) / median_ns,
          .rank = static_cast<int>(late - ranks.begin()),
          .phase = 2 * *longest > step.window_ns ? std::string(ranges::kPhases[phase].name) : ""};
}

// By place; without those that evaluate: it is known why they are long.
std::map<std::int64_t, std::int64_t> lengths_of(const std::vector<StepsOfRank>& ranks) {
  std::map<std::int64_t, std::int64_t> lengths;
  for (std::size_t place = 0; place < ranks.front().size(); ++place) {
    const bool any_evaluates =
        std::ranges::any_of(ranks, [&](const StepsOfRank& rank) { return evaluates(rank[place]); });
    if (!any_evaluates) lengths[static_cast<std::int64_t>(place)] = length_at(ranks, place);
  }
  return lengths;
}

// Out of what is kept and out of the sum; in the order of the steps.
std::vector<statistics::Outlier> take_at(const std::set<std::int64_t>& places, double median_ns,
                                         std::vector<StepsOfRank>& ranks, PhaseTotals& sum) {
  std::vector<statistics::Outlier> taken;
  std::set<std::int64_t> numbers;
  for (const std::int64_t place : places) {
    taken.push_back(outlier_at(ranks, static_cast<std::size_t>(place), median_ns));
    numbers.insert(ranks.front()[static_cast<std::size_t>(place)].number);
  }
  for (StepsOfRank& rank : ranks) {
    std::erase_if(rank, [&](const StepTimes& step) {
      if (!numbers.contains(step.number)) return false;
      sum.remove(step);
      return true;
    });
  }
  return taken;
}

// Where every step that a rank has kept of the older ones is long, nobody knows how many more were.
bool there_may_be_more(std::span<const RankAccount> ranks, std::int64_t median_ns) {
  const auto is_long = [&](const StepTimes& step) {
    return statistics::is_outlier(step.window_ns, median_ns);
  };
  return std::ranges::any_of(ranks, [&](const RankAccount& rank) {
    return rank.longest_before.size() == PhaseHistory::kMostLong &&
           std::ranges::all_of(rank.longest_before, is_long);
  });
}

// Steps that are nobody's mean: of the newest ones, and by their median of those before, unless
// long ones are too many to stand out.
std::vector<statistics::Outlier> take_outliers(std::span<const RankAccount> ranks,
                                               std::vector<StepsOfRank>& newest, PhaseTotals& sum) {
  const std::map<std::int64_t, std::int64_t> lengths = lengths_of(newest);
  if (lengths.empty()) return {};
  std::vector<std::int64_t> all;
  for (const auto& [place, length_ns] : lengths) all.push_back(length_ns);
  const std::int64_t median_ns = statistics::upper_median(std::move(all));
  const auto is_long = [&](const auto& one) {
    return statistics::is_outlier(one.second, median_ns);
  };
  const std::set<std::int64_t> long_newest = statistics::outliers_among(lengths);
  if (std::ranges::count_if(lengths, is_long) > std::ssize(long_newest)) return {};
  std::vector<statistics::Outlier> taken;
  if (!there_may_be_more(ranks, median_ns)) {
    std::vector<StepsOfRank> before = common_steps(ranks, &RankAccount::longest_before);
    std::set<std::int64_t> long_before;
    for (const auto& one : lengths_of(before)) {
      if (is_long(one)) long_before.insert(one.first);
    }
    taken = take_at(long_before, static_cast<double>(median_ns), before, sum);
  }
  for (const auto& one : take_at(long_newest, static_cast<double>(median_ns), newest, sum))
    taken.push_back(one);
  return taken;
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
  return time(ranks[static_cast<std::size_t>(rank)]) - statistics::median(others);
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
  std::vector<StepsOfRank> newest = common_steps(ranks, &RankAccount::newest);
  verdict.outliers = take_outliers(ranks, newest, sum);
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
