#include "profiling/analysis/stragglers.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <set>

#include "profiling/analysis/phase_times.hpp"
#include "profiling/analysis/step_gaps.hpp"
#include "profiling/analysis/step_waiting.hpp"

namespace sidestream::analysis {
namespace {

constexpr double kLeastShareOfStep = 0.02;
constexpr double kLeastShareOfWaiting = 0.6;

std::int64_t median_of(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

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

// The phase in which this rank exceeds the median of the others most. A phase that the others do
// not have takes them no time.
LongerPhase longer_phase(const std::vector<RankView>& ranks, int rank) {
  std::map<int, std::map<std::string, std::int64_t>> of_rank;  // over its files
  for (const RankView& one : ranks) {
    auto& phases = of_rank[one.timeline->info.rank];
    for (const auto& [phase, time_ns] : phase_times(*one.timeline)) phases[phase] += time_ns;
    phases[kBetweenSteps] += step_gaps(one).unnamed_ns;
  }
  const std::map<std::string, std::int64_t> own = of_rank[rank];
  std::map<std::string, std::vector<std::int64_t>> others;
  for (auto& [other, phases] : of_rank) {
    if (other == rank) continue;
    for (const auto& [phase, time_ns] : own) others[phase].push_back(phases[phase]);
  }
  LongerPhase longest;
  for (const auto& [phase, time_ns] : own) {
    const std::int64_t excess_ns = time_ns - median_of(others[phase]);
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
// because of what it did before.
std::string phase_of(const std::vector<RankView>& ranks, const CollectiveMatches& matches, int rank,
                     std::int64_t cost_ns) {
  const LongerPhase longer = longer_phase(ranks, rank);
  if (longer.name.empty() || 2 * longer.excess_ns >= cost_ns) return longer.name;
  return late_to(matches, rank);
}

bool lies_in_a_step(const std::vector<RankView>& ranks, const CollectivePart& part) {
  const std::vector<StepRow>& steps = ranks[part.timeline].steps;
  const auto after = std::upper_bound(
      steps.begin(), steps.end(), part.start_ns,
      [](std::int64_t time_ns, const StepRow& step) { return time_ns < step.window.start_ns; });
  return after != steps.begin() && part.start_ns < std::prev(after)->window.end_ns;
}

// Between steps ranks wait for one that saves or evaluates: that is no slow rank.
CollectiveMatches inside_steps(const std::vector<RankView>& ranks, const CollectiveMatches& all) {
  CollectiveMatches inside;
  for (const MatchedCollective& one : all.matched) {
    if (lies_in_a_step(ranks, one.parts.front())) inside.matched.push_back(one);
  }
  return inside;
}

// How much less a rank waited than the median of the others.
std::int64_t lead_ns(const StepWaiting& step, int rank) {
  std::vector<std::int64_t> others;
  for (const auto& [other, wait] : step.of_rank) {
    if (other != rank) others.push_back(wait.costly_ns);
  }
  return median_of(others) - step.of_rank.at(rank).costly_ns;
}

int least_waiting(const StepWaiting& step) {
  return std::min_element(
             step.of_rank.begin(), step.of_rank.end(),
             [](const auto& a, const auto& b) { return a.second.costly_ns < b.second.costly_ns; })
      ->first;
}

// Steps that all ranks have which any step has.
std::vector<StepWaiting> complete_steps(const std::vector<RankView>& ranks,
                                        const CollectiveMatches& matches) {
  std::vector<StepWaiting> steps = waiting_in_steps(ranks, matches);
  std::set<int> waiting;
  for (const StepWaiting& step : steps) {
    for (const auto& [rank, wait] : step.of_rank) waiting.insert(rank);
  }
  std::erase_if(steps, [&](const StepWaiting& step) {
    return waiting.size() < 2 || step.of_rank.size() < waiting.size();
  });
  return steps;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Half the width of the 95 % interval of the mean, for the one of `choices` that was picked.
double half_interval(const std::vector<double>& values, std::size_t choices) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  const double error = std::sqrt(squares / (count - 1) / count);
  const double outside = 0.05 / static_cast<double>(choices);
  return boost::math::quantile(boost::math::students_t(count - 1), 1 - outside / 2) * error;
}

// Of the rank that waited least in all: what it costs the others, and how sure that is.
Straggler least_waiting_rank(const std::vector<StepWaiting>& steps) {
  StepWaiting all;
  for (const StepWaiting& step : steps) {
    for (const auto& [rank, wait] : step.of_rank) all.of_rank[rank].costly_ns += wait.costly_ns;
  }
  Straggler found{.rank = least_waiting(all), .phase = {}};
  std::vector<double> leads;
  for (const StepWaiting& step : steps) {
    leads.push_back(static_cast<double>(lead_ns(step, found.rank)));
    found.steps_last += least_waiting(step) == found.rank;
  }
  found.steps = static_cast<std::int64_t>(steps.size());
  found.cost_ns_per_step = std::llround(mean_of(leads));
  constexpr std::size_t kLeastForScatter = 3;
  if (leads.size() < kLeastForScatter) return found;
  const double half = half_interval(leads, all.of_rank.size());
  found.cost_low_ns = std::llround(mean_of(leads) - half);
  found.cost_high_ns = std::llround(mean_of(leads) + half);
  return found;
}

// What the last rank of each step, whichever it is, costs the others.
std::int64_t cost_of_last_ranks(const std::vector<StepWaiting>& steps) {
  std::int64_t sum_ns = 0;
  for (const StepWaiting& step : steps) sum_ns += lead_ns(step, least_waiting(step));
  return sum_ns / static_cast<std::int64_t>(steps.size());
}

}  // namespace

std::map<int, std::int64_t> waiting_of_ranks(const CollectiveMatches& matches) {
  std::map<int, std::int64_t> waiting;
  for (const MatchedCollective& one : matches.matched) {
    for (const CollectivePart& part : one.parts)
      waiting[part.rank] += part.duration_ns - one.transfer_ns;
  }
  return waiting;
}

StragglerSearch find_straggler(const std::vector<RankView>& ranks,
                               const CollectiveMatches& all_matches) {
  const CollectiveMatches matches = inside_steps(ranks, all_matches);
  const std::vector<StepWaiting> steps = complete_steps(ranks, matches);
  if (steps.empty()) return {};
  std::vector<std::int64_t> windows;
  for (const StepRow* step : plain_steps(ranks)) windows.push_back(step->budget.window_ns);
  const auto matters = [&](std::int64_t cost_ns) {
    return cost_ns > 0 && static_cast<double>(cost_ns) >=
                              kLeastShareOfStep * static_cast<double>(median_of(windows));
  };
  Straggler found = least_waiting_rank(steps);
  const bool by_chance = found.cost_low_ns && *found.cost_low_ns <= 0;
  if (matters(found.cost_ns_per_step) && !by_chance &&
      caused_share(matches, found.rank) >= kLeastShareOfWaiting) {
    found.phase = phase_of(ranks, matches, found.rank, found.cost_ns_per_step * found.steps);
    return {.straggler = std::move(found)};
  }
  const std::int64_t rotating_ns = cost_of_last_ranks(steps);
  if (!matters(rotating_ns)) return {};
  return {.straggler = {}, .rotating_ns_per_step = rotating_ns};
}

}  // namespace sidestream::analysis
