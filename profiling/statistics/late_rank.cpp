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

// How much less a rank waited than the median of the others.
std::int64_t lead_ns(const StepWaits& step, int rank) {
  std::vector<std::int64_t> others;
  for (const auto& [other, wait_ns] : step) {
    if (other != rank) others.push_back(wait_ns);
  }
  return upper_median(std::move(others)) - step.at(rank);
}

int least_waiting(const StepWaits& step) {
  return std::min_element(step.begin(), step.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

std::string phase_text(const std::string& phase) {
  if (phase.empty()) return "";
  return phase == kOtherWork ? "in other work of the host" : "in " + phase;
}

LateRank least_waiting_rank(const std::vector<StepWaits>& steps) {
  StepWaits all;
  for (const StepWaits& step : steps) {
    for (const auto& [rank, wait_ns] : step) all[rank] += wait_ns;
  }
  LateRank found{.rank = least_waiting(all), .steps = static_cast<std::int64_t>(steps.size())};
  std::vector<double> leads;
  for (const StepWaits& step : steps) {
    leads.push_back(static_cast<double>(lead_ns(step, found.rank)));
    found.steps_last += least_waiting(step) == found.rank;
  }
  found.cost_ns_per_step = std::llround(std::accumulate(leads.begin(), leads.end(), 0.0) /
                                        static_cast<double>(leads.size()));
  constexpr std::size_t kTwoSteps = 2;  // enough where they agree
  if (const auto interval = series_interval(leads, all.size(), kTwoSteps)) {
    found.cost_low_ns = std::llround(interval->low);
    found.cost_high_ns = std::llround(interval->high);
  }
  return found;
}

std::int64_t cost_of_last_ranks(const std::vector<StepWaits>& steps) {
  std::int64_t sum_ns = 0;
  for (const StepWaits& step : steps) sum_ns += lead_ns(step, least_waiting(step));
  return sum_ns / static_cast<std::int64_t>(steps.size());
}

double share_of_costs(const std::vector<StepWaits>& steps, int rank) {
  std::int64_t all_ns = 0, own_ns = 0;
  for (const StepWaits& step : steps) {
    const int last = least_waiting(step);
    const std::int64_t cost_ns = lead_ns(step, last);
    all_ns += cost_ns;
    if (last == rank) own_ns += cost_ns;
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

RankJudgement judge_ranks(const std::vector<StepWaits>& steps, double step_ns,
                          const std::function<double(int rank)>& caused_share) {
  if (steps.empty()) return {};
  const auto matters = [&](std::int64_t cost_ns) {
    return cost_ns > 0 && static_cast<double>(cost_ns) >= kLeastShareOfStep * step_ns;
  };
  const LateRank late = least_waiting_rank(steps);
  if (matters(late.cost_ns_per_step) && !late.may_be_chance() &&
      caused_share(late.rank) >= kLeastShareOfCosts)
    return {.late = late};
  const auto usual = usually_last_rank(steps);
  if (usual && matters(usual->median_cost_ns)) return {.usually_last = usual};
  const std::int64_t rotating_ns = cost_of_last_ranks(steps);
  if (!matters(rotating_ns)) return {};
  return {.rotating_ns_per_step = rotating_ns};
}

}  // namespace sidestream::statistics
