// What bounds a run and which of its ranks is late, from the account of its phases alone: no
// profile, and no clock is compared with another's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiling/record/phase_account.hpp"
#include "profiling/statistics/late_rank.hpp"
#include "profiling/statistics/mean_interval.hpp"

namespace sidestream::record {

// Below this many steps nothing is said.
inline constexpr std::int64_t kLeastStepsForVerdict = 20;

// Of one rank.
struct RankAccount {
  PhaseTotals totals;             // of the whole run
  std::vector<StepTimes> newest;  // steps one by one
};

// Shares of an average step of all ranks, together 1. The words are those of a report of traces: io
// (waiting for data), comm (collectives that nothing hides), gpu (computing, on whatever computes),
// cpu (all else).
struct Bound {
  std::string word;       // of the largest share
  std::string runner_up;  // of the second
  double io = 0, cpu = 0, gpu = 0, comm = 0;
  // By how much of a step the largest leads the second, over the newest steps, with its 95 %
  // interval. Nothing where there are too few of them.
  std::optional<statistics::Interval> lead = {};

  // Not only on average, but beyond what steps scatter.
  bool is_sure() const noexcept { return lead && lead->low > 0; }
};

// Means over the newest steps.
struct RankPhases {
  int rank = 0;
  double step_ms = 0;
  double comm_ms = 0;
  double other_ms = 0;
  std::array<double, ranges::kPhaseCount> phase_ms = {};
};

// The rank that the others wait for steadily, and why. It is one only where that costs at least 2 %
// of a step, chance does not explain it, and it is behind most of what late ranks cost.
struct RunStraggler : statistics::LateRank {
  std::string phase = {};  // which it does longer than the others; empty: none explains the cost
};

struct RunVerdict {
  std::int64_t steps = 0;         // of the run
  std::int64_t newest_steps = 0;  // that all ranks have kept one by one
  Bound bound;
  std::vector<RankPhases> ranks = {};
  std::optional<RunStraggler> straggler = {};
  // There is none, and still the others wait for whoever is last: at this cost. Nothing below 2 %
  // of a step.
  std::optional<std::int64_t> rotating_ns_per_step = {};
};

// Work of the host outside every phase, as the phase of a straggler and a column of the table.
inline constexpr const char* kOtherWork = "other";

// Ranks by their numbers. Nothing below kLeastStepsForVerdict steps.
std::optional<RunVerdict> find_verdict(std::span<const RankAccount> ranks);

}  // namespace sidestream::record
