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

// The phase in which this rank exceeds the median of the others most.
std::string longer_phase(const std::vector<RankView>& ranks, int rank) {
  std::map<std::string, std::int64_t> own;
  std::map<std::string, std::vector<std::int64_t>> others;
  for (const RankView& one : ranks) {
    for (const auto& [phase, time_ns] : phase_times(*one.timeline)) {
      if (one.timeline->info.rank == rank)
        own[phase] += time_ns;
      else
        others[phase].push_back(time_ns);
    }
  }
  std::string longest;
  std::int64_t most_ns = 0;
  for (const auto& [phase, time_ns] : own) {
    const std::int64_t excess_ns = time_ns - median_of(others[phase]);
    if (excess_ns <= most_ns) continue;
    most_ns = excess_ns;
    longest = phase;
  }
  return longest;
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

std::optional<Straggler> find_straggler(const std::vector<RankView>& ranks,
                                        const CollectiveMatches& matches) {
  const std::map<int, std::int64_t> waiting = waiting_of_ranks(matches);
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
  const std::int64_t cost_ns = (median_of(others) - least->second) / steps_of(ranks, least->first);
  if (static_cast<double>(cost_ns) < kLeastShareOfStep * static_cast<double>(median_of(windows)))
    return std::nullopt;
  if (cost_ns <= 0 || caused_share(matches, least->first) < kLeastShareOfWaiting)
    return std::nullopt;
  return Straggler{least->first, longer_phase(ranks, least->first), cost_ns};
}

}  // namespace sidestream::analysis
