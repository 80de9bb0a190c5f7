#include "profiling/analysis/align.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "profiling/trace/clock_fit.hpp"

namespace sidestream::analysis {
namespace {

using trace::ClockFit;
using trace::ClockModel;
using trace::ClockPair;
using trace::TraceSet;
using PairsOfRank = std::map<int, std::vector<ClockPair>>;

std::int64_t wall_end_ns(const TraceSet& set, const CollectivePart& part) {
  return part.end_ns() + set.timelines[part.timeline].info.base_ns;
}

// Ends of matched collectives: of each rank against the reference. No rank leaves a collective
// before every other one has entered it, so that the ends lie no further apart than its duration.
PairsOfRank end_pairs(const TraceSet& set, const CollectiveMatches& matches, int reference) {
  PairsOfRank pairs;
  for (const MatchedCollective& one : matches.matched) {
    if (one.parts.front().rank != reference) continue;
    for (std::size_t i = 1; i < one.parts.size(); ++i)
      pairs[one.parts[i].rank].push_back(
          {wall_end_ns(set, one.parts[i]), wall_end_ns(set, one.parts.front()),
           std::max(one.parts[i].duration_ns, one.parts.front().duration_ns)});
  }
  return pairs;
}

bool one_host(const trace::ClockSamples& samples, const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    const auto found = samples.find(rank);
    if (found == samples.end() || found->second.boot_id.empty()) return false;
    if (found->second.boot_id != samples.at(ranks.front()).boot_id) return false;
  }
  return true;
}

void from_samples(ClockModel& clock, const trace::ClockSamples& samples, int reference) {
  clock.method = "samples";
  for (const auto& [rank, of_rank] : samples) {
    if (rank == reference || of_rank.pairs.empty()) continue;
    const ClockFit fit = trace::fit_clock(of_rank.pairs);
    clock.ranks[rank] = fit.clock;
    clock.uncertainty_us[rank] =
        std::max(fit.uncertainty_us, static_cast<double>(of_rank.round_trip_ns) / 2000);
    clock.drift_uncertainty_ppm[rank] = fit.drift_uncertainty_ppm;
  }
}

// Collectives correct samples only where they agree
// among themselves better than the samples are known.
void refine(ClockModel& clock, const PairsOfRank& pairs) {
  bool refined = false;
  for (const auto& [rank, of_rank] : pairs) {
    std::vector<ClockPair> aligned;
    const trace::RankClock before = clock.of(rank);
    for (const ClockPair& pair : of_rank)
      aligned.push_back({before.to_common(pair.time_ns), pair.reference_ns, pair.slack_ns});
    const ClockFit rest = trace::fit_clock(aligned, trace::Drift::kNone);
    if (rest.uncertainty_us >= clock.uncertainty_us[rank]) continue;
    clock.ranks[rank].offset_ns += rest.clock.offset_ns;
    clock.uncertainty_us[rank] = rest.uncertainty_us;
    refined = true;
  }
  if (refined) clock.method = "samples+collectives";
}

void from_collectives(ClockModel& clock, const PairsOfRank& pairs) {
  clock.method = "collectives";
  for (const auto& [rank, of_rank] : pairs) {
    const ClockFit fit = trace::fit_clock(of_rank);
    clock.ranks[rank] = fit.clock;
    clock.uncertainty_us[rank] = fit.uncertainty_us;
    clock.drift_uncertainty_ppm[rank] = fit.drift_uncertainty_ppm;
  }
}

void measure_residuals(ClockModel& clock, const PairsOfRank& pairs) {
  std::vector<double> residuals;
  for (const auto& [rank, of_rank] : pairs) {
    const trace::RankClock of = clock.of(rank);
    for (const ClockPair& pair : of_rank)
      residuals.push_back(
          std::abs(static_cast<double>(of.to_common(pair.time_ns) - pair.reference_ns)) / 1000);
  }
  if (residuals.empty()) return;
  std::sort(residuals.begin(), residuals.end());
  const auto at = [&](double share) {
    return residuals[static_cast<std::size_t>(share * static_cast<double>(residuals.size() - 1) +
                                              0.5)];
  };
  clock.residual_us_p50 = at(0.5);
  clock.residual_us_p95 = at(0.95);
  clock.has_residual = true;
}

}  // namespace

void align_clocks(TraceSet& set, const CollectiveMatches& matches) {
  const std::vector<int> ranks = set.ranks();
  if (ranks.size() < 2) return;
  const PairsOfRank pairs = end_pairs(set, matches, ranks.front());
  ClockModel& clock = set.clock;
  if (set.samples && one_host(*set.samples, ranks)) {
    clock.method = "same host";
  } else if (set.samples) {
    from_samples(clock, *set.samples, ranks.front());
    refine(clock, pairs);
  } else if (!pairs.empty()) {
    from_collectives(clock, pairs);
    set.warnings.push_back(
        "no clock samples beside the traces: ranks are aligned on matched collectives alone");
  } else {
    set.warnings.push_back(
        "neither clock samples nor matched collectives: ranks keep their own clocks");
  }
  measure_residuals(clock, pairs);
}

}  // namespace sidestream::analysis
