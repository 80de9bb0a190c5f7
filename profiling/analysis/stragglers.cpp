#include "profiling/analysis/stragglers.hpp"

#include <algorithm>

#include "profiling/analysis/phase_times.hpp"

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

std::int64_t steps_of(const std::vector<RankView>& ranks, int rank) {
  std::int64_t steps = 0;
  for (const RankView& one : ranks) {
    if (one.timeline->info.rank == rank) steps += static_cast<std::int64_t>(one.steps.size());
  }
  return std::max<std::int64_t>(1, steps);
}

struct LongerPhase {
  std::string name = {};
  std::int64_t excess_ns = 0;
};

// The phase in which this rank exceeds the median of the others most.
LongerPhase longer_phase(const std::vector<RankView>& ranks, int rank) {
  std::map<int, std::map<std::string, std::int64_t>> of_rank;  // over its files
  for (const RankView& one : ranks) {
    for (const auto& [phase, time_ns] : phase_times(*one.timeline))
      of_rank[one.timeline->info.rank][phase] += time_ns;
  }
  const std::map<std::string, std::int64_t> own = of_rank[rank];
  std::map<std::string, std::vector<std::int64_t>> others;
  for (const auto& [other, phases] : of_rank) {
    if (other == rank) continue;
    for (const auto& [phase, time_ns] : phases) others[phase].push_back(time_ns);
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
  for (const RankView& one : ranks) {
    if (one.timeline->info.rank != part.rank) continue;
    for (const StepRow& step : one.steps) {
      if (part.start_ns >= step.window.start_ns && part.start_ns < step.window.end_ns) return true;
    }
  }
  return false;
}

// Between steps ranks wait for one that saves or evaluates: that is no slow rank.
CollectiveMatches inside_steps(const std::vector<RankView>& ranks, const CollectiveMatches& all) {
  CollectiveMatches inside;
  for (const MatchedCollective& one : all.matched) {
    if (lies_in_a_step(ranks, one.parts.front())) inside.matched.push_back(one);
  }
  return inside;
}

// What waiting costs each rank, at most: once where several collectives wait at the same time, and
// no more than the communication that nothing hides. A wait behind compute may still push what
// comes after it into the open. Ranks wait at the beginning of their part, until the last one
// comes.
std::map<int, std::int64_t> costly_waiting(const std::vector<RankView>& ranks,
                                           const CollectiveMatches& matches) {
  std::map<std::size_t, std::vector<Interval>> of_file;
  for (const MatchedCollective& one : matches.matched) {
    for (const CollectivePart& part : one.parts)
      of_file[part.timeline].push_back({part.start_ns, part.end_ns() - one.transfer_ns});
  }
  std::map<int, std::int64_t> waiting;
  for (auto& [file, intervals] : of_file) {
    std::int64_t exposed_ns = 0;
    for (const StepRow& step : ranks[file].steps) exposed_ns += step.budget.exposed_comm_ns;
    const IntervalSet waits(std::move(intervals));
    waiting[ranks[file].timeline->info.rank] += std::min(waits.length_ns(), exposed_ns);
  }
  return waiting;
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

std::map<std::size_t, std::int64_t> waiting_of_files(const CollectiveMatches& matches) {
  std::map<std::size_t, std::int64_t> waiting;
  for (const MatchedCollective& one : matches.matched) {
    for (const CollectivePart& part : one.parts)
      waiting[part.timeline] += part.duration_ns - one.transfer_ns;
  }
  return waiting;
}

std::optional<Straggler> find_straggler(const std::vector<RankView>& ranks,
                                        const CollectiveMatches& all_matches) {
  const CollectiveMatches matches = inside_steps(ranks, all_matches);
  const std::map<int, std::int64_t> waiting = costly_waiting(ranks, matches);
  if (waiting.size() < 2) return std::nullopt;
  const auto least =
      std::min_element(waiting.begin(), waiting.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::int64_t> others;
  for (const auto& [rank, waiting_ns] : waiting) {
    if (rank != least->first) others.push_back(waiting_ns);
  }
  std::vector<std::int64_t> windows;
  for (const StepRow* step : plain_steps(ranks)) windows.push_back(step->budget.window_ns);
  const std::int64_t all_ns = median_of(others) - least->second;
  const std::int64_t cost_ns = all_ns / steps_of(ranks, least->first);
  if (static_cast<double>(cost_ns) < kLeastShareOfStep * static_cast<double>(median_of(windows)))
    return std::nullopt;
  if (cost_ns <= 0 || caused_share(matches, least->first) < kLeastShareOfWaiting)
    return std::nullopt;
  return Straggler{least->first, phase_of(ranks, matches, least->first, all_ns), cost_ns};
}

}  // namespace sidestream::analysis
