#include "profiling/statistics/late_rank.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <numeric>

#include "profiling/statistics/mean_interval.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::statistics {
namespace {

constexpr double kLeastShareOfStep = 0.02;
constexpr double kLeastShareOfCosts = 0.6;
constexpr double kClearMajority = 0.75;
constexpr double kOutside = 0.05;
constexpr std::int64_t kTimesWider = 4;  // a gap between ranks than what is between late ones

// How much less a rank waited than the median of the others.
std::int64_t lead_ns(const StepWaits& step, int rank) {
  std::vector<std::int64_t> others;
  for (const auto& [other, wait_ns] : step) {
    if (other != rank) others.push_back(wait_ns);
  }
  return std::llround(median(std::move(others))) - step.at(rank);
}

StepWaits waits_of_all(const std::vector<StepWaits>& steps) {
  StepWaits all;
  for (const StepWaits& step : steps) {
    for (const auto& [rank, wait_ns] : step) all[rank] += wait_ns;
  }
  return all;
}

constexpr std::size_t kTwoSteps = 2;  // enough for an interval where they agree

bool is_one_of(const std::vector<int>& ranks, int rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

// The ranks before the widest gap, those that waited least first, where they are several but no
// more than half, and the gap is that much wider than what lies between them.
std::vector<int> ranks_apart(const StepWaits& all) {
  std::vector<std::pair<std::int64_t, int>> sorted;
  for (const auto& [rank, wait_ns] : all) sorted.emplace_back(wait_ns, rank);
  std::ranges::sort(sorted);
  const auto gap_after = [&](std::size_t i) { return sorted[i + 1].first - sorted[i].first; };
  std::size_t widest = 0;
  for (std::size_t i = 1; i + 1 < sorted.size(); ++i) {
    if (gap_after(i) > gap_after(widest)) widest = i;
  }
  const std::size_t count = widest + 1;
  if (count < 2 || 2 * count > sorted.size() ||
      gap_after(widest) < kTimesWider * (sorted[widest].first - sorted.front().first))
    return {};
  std::vector<int> ranks;
  for (std::size_t i = 0; i < count; ++i) ranks.push_back(sorted[i].second);
  return ranks;
}

struct SplitWaits {
  std::vector<std::int64_t> theirs, others;
};

SplitWaits split(const StepWaits& step, const std::vector<int>& ranks) {
  SplitWaits waits;
  for (const auto& [rank, wait_ns] : step)
    (is_one_of(ranks, rank) ? waits.theirs : waits.others).push_back(wait_ns);
  return waits;
}

int least_waiting(const StepWaits& step) {
  return std::min_element(step.begin(), step.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

std::vector<int> LateRank::ranks() const {
  std::vector<int> all = also;
  all.push_back(rank);
  std::ranges::sort(all);
  return all;
}

std::string ranks_text(const LateRank& late) { return ranks_text(late.ranks()); }

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kMostNumbers = 8;
  const std::size_t shown = std::min(ranks.size(), kMostNumbers);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (shown < ranks.size()) text += " and " + std::to_string(ranks.size() - shown) + " more";
  return text;
}

std::string phase_text(const std::string& phase) {
  if (phase.empty()) return "";
  return phase == kOtherWork ? "in other work of the host" : "in " + phase;
}

LateRank least_waiting_rank(const std::vector<StepWaits>& steps) {
  const StepWaits all = waits_of_all(steps);
  LateRank found{.rank = least_waiting(all), .steps = static_cast<std::int64_t>(steps.size())};
  std::vector<double> leads;
  for (const StepWaits& step : steps) {
    leads.push_back(static_cast<double>(lead_ns(step, found.rank)));
    found.steps_last += least_waiting(step) == found.rank;
  }
  found.cost_ns_per_step = std::llround(std::accumulate(leads.begin(), leads.end(), 0.0) /
                                        static_cast<double>(leads.size()));
  if (const auto interval = series_interval(leads, all.size(), kTwoSteps)) {
    found.cost_low_ns = std::llround(interval->low);
    found.cost_high_ns = std::llround(interval->high);
  }
  return found;
}

std::optional<LateRank> late_group(const std::vector<StepWaits>& steps) {
  const StepWaits all = waits_of_all(steps);
  const std::vector<int> ranks = ranks_apart(all);
  if (ranks.empty()) return std::nullopt;
  LateRank found{.rank = ranks.front(),
                 .also = {ranks.begin() + 1, ranks.end()},
                 .steps = static_cast<std::int64_t>(steps.size())};
  std::ranges::sort(found.also);
  std::vector<double> gaps, costs;
  for (const StepWaits& step : steps) {
    SplitWaits waits = split(step, ranks);
    gaps.push_back(
        static_cast<double>(std::ranges::min(waits.others) - std::ranges::max(waits.theirs)));
    costs.push_back(median(std::move(waits.others)) -
                    static_cast<double>(std::ranges::min(waits.theirs)));
    found.steps_last += is_one_of(ranks, least_waiting(step));
  }
  const auto apart = series_interval(gaps, all.size(), kTwoSteps);
  const auto cost = series_interval(costs, all.size(), kTwoSteps);
  if (!apart || apart->low <= 0 || !cost) return std::nullopt;
  found.cost_ns_per_step = std::llround(cost->mean);
  found.cost_low_ns = std::llround(cost->low);
  found.cost_high_ns = std::llround(cost->high);
  return found;
}

std::int64_t cost_of_last_ranks(const std::vector<StepWaits>& steps) {
  std::int64_t sum_ns = 0;
  for (const StepWaits& step : steps) sum_ns += lead_ns(step, least_waiting(step));
  return sum_ns / static_cast<std::int64_t>(steps.size());
}

double share_of_costs(const std::vector<StepWaits>& steps, const std::vector<int>& ranks) {
  std::int64_t all_ns = 0, own_ns = 0;
  for (const StepWaits& step : steps) {
    const int last = least_waiting(step);
    const std::int64_t cost_ns = lead_ns(step, last);
    all_ns += cost_ns;
    if (is_one_of(ranks, last)) own_ns += cost_ns;
  }
  return all_ns == 0 ? 0 : static_cast<double>(own_ns) / static_cast<double>(all_ns);
}

std::optional<UsuallyLast> usually_last_rank(const std::vector<StepWaits>& steps) {
  std::map<int, std::int64_t> times_last;
  for (const StepWaits& step : steps) ++times_last[least_waiting(step)];
  const auto most =
      std::ranges::max_element(times_last, {}, [](const auto& one) { return one.second; });
  if (most == times_last.end() ||
      static_cast<double>(most->second) < kClearMajority * static_cast<double>(steps.size()))
    return std::nullopt;
  const auto ranks = static_cast<double>(steps.front().size());
  const boost::math::binomial equals(static_cast<double>(steps.size()), 1 / ranks);
  const auto fewer = static_cast<double>(most->second - 1);
  if (boost::math::cdf(boost::math::complement(equals, fewer)) * ranks > kOutside)
    return std::nullopt;
  std::vector<std::int64_t> leads;
  for (const StepWaits& step : steps) leads.push_back(lead_ns(step, most->first));
  return UsuallyLast{.rank = most->first,
                     .median_cost_ns = upper_median(std::move(leads)),
                     .steps = static_cast<std::int64_t>(steps.size()),
                     .steps_last = most->second};
}

RankJudgement judge_ranks(const std::vector<StepWaits>& steps, double step_ns) {
  if (steps.empty()) return {};
  const auto matters = [&](std::int64_t cost_ns) {
    return cost_ns > 0 && static_cast<double>(cost_ns) >= kLeastShareOfStep * step_ns;
  };
  const auto is_late = [&](const LateRank& one) {
    return matters(one.cost_ns_per_step) && !one.may_be_chance() &&
           share_of_costs(steps, one.ranks()) >= kLeastShareOfCosts;
  };
  if (const auto group = late_group(steps); group && is_late(*group)) return {.late = group};
  if (const LateRank late = least_waiting_rank(steps); is_late(late)) return {.late = late};
  const auto usual = usually_last_rank(steps);
  if (usual && matters(usual->median_cost_ns)) return {.usually_last = usual};
  const std::int64_t rotating_ns = cost_of_last_ranks(steps);
  if (!matters(rotating_ns)) return {};
  return {.rotating_ns_per_step = rotating_ns};
}

}  // namespace sidestream::statistics
