// What bounds a run and which of its ranks is late, from the account of its phases alone: no
// profile, and no clock is compared with another's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profiling/record/phase_account.hpp"
#include "profiling/statistics/bound.hpp"
#include "profiling/statistics/late_rank.hpp"
#include "profiling/statistics/outliers.hpp"

namespace sidestream::record {

// Below this many steps nothing is said.
inline constexpr std::int64_t kLeastStepsForVerdict = 20;

// Of one rank.
struct RankAccount {
  PhaseTotals totals;                          // of the whole run
  std::vector<StepTimes> newest;               // steps one by one
  std::vector<StepTimes> longest_before = {};  // of the others
  std::optional<double> processor_wait = {};   // processor_wait.hpp
};

// The rank that waits most for a processor.
struct ProcessorShortage {
  int rank = 0;
  double share = 0;  // of the time that its thread wanted one
};
// Threads of the system take a little everywhere.
inline constexpr double kProcessorShortage = 0.1;

// Means over the newest steps.
struct RankPhases {
  int rank = 0;
  double step_ms = 0;
  double comm_ms = 0;
  double other_ms = 0;
  std::array<double, ranges::kPhaseCount> phase_ms = {};
};

struct RunVerdict {
  std::int64_t steps = 0;         // of the run
  std::int64_t newest_steps = 0;  // that all ranks have kept one by one, but for outliers
  // Not among these: they had more phases or collectives than an account keeps of a step. Of the
  // rank with most of them.
  std::int64_t uncounted_steps = 0;
  statistics::Bound bound;  // the lead over the newest steps
  std::vector<RankPhases> ranks = {};
  std::vector<statistics::Outlier> outliers = {};  // in no mean
  std::optional<statistics::Straggler> straggler = {};
  // statistics::RankJudgement
  std::optional<statistics::UsuallyLast> usually_last = {};
  std::optional<std::int64_t> rotating_ns_per_step = {};
  std::optional<ProcessorShortage> shortage = {};  // of at least kProcessorShortage
  std::optional<int> rank_alone = {};  // of this rank only: the others could not be asked

  bool is_known() const { return steps >= kLeastStepsForVerdict; }
};

// Ranks by their numbers. Nothing below kLeastStepsForVerdict steps; where as many could not be
// counted the verdict says that, and nothing else.
std::optional<RunVerdict> find_verdict(std::span<const RankAccount> ranks);

}  // namespace sidestream::record
