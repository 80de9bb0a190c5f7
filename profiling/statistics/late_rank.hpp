// Which rank the others wait for, judged step by step from how long each rank waited: who comes
// last waits least, whatever its clock says.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace sidestream::statistics {

// How long each rank waited for the others in one step, in nanoseconds.
using StepWaits = std::map<int, std::int64_t>;

struct LateRank {
  int rank = 0;
  std::int64_t cost_ns_per_step = 0;  // how much less it waited than the median of the others
  std::int64_t steps = 0;             // judged
  std::int64_t steps_last = 0;        // of them, those where it waited least
  // 95 % interval of the cost, corrected for the choice among all ranks; nothing below three steps.
  std::optional<std::int64_t> cost_low_ns = {};
  std::optional<std::int64_t> cost_high_ns = {};

  bool may_be_chance() const noexcept { return cost_low_ns && *cost_low_ns <= 0; }
};

// Of the rank that waited least in all. All steps hold the same two or more ranks; there is one.
LateRank least_waiting_rank(const std::vector<StepWaits>& steps);

// The mean over the steps of what the last rank of each, whichever it is, costs the others.
std::int64_t cost_of_last_ranks(const std::vector<StepWaits>& steps);

// Of what last ranks cost, the share of the steps where it was this one; 0 where nothing costs.
double share_of_costs(const std::vector<StepWaits>& steps, int rank);

}  // namespace sidestream::statistics
