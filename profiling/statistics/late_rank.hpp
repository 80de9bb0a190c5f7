// Which rank the others wait for, judged step by step from how long each rank waited: who comes
// last waits least, whatever its clock says.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::statistics {

// How long each rank waited for the others in one step, in nanoseconds.
using StepWaits = std::map<int, std::int64_t>;

struct LateRank {
  int rank = 0;
  std::vector<int> also = {};         // ranks as late as it, by number: those of a slow node
  std::int64_t cost_ns_per_step = 0;  // how much less it waited than the median of the others
  std::int64_t steps = 0;             // judged
  std::int64_t steps_last = 0;        // of them, those where it, or one as late, waited least
  // 95 % interval of the cost, corrected for the choice among all ranks and for steps that resemble
  // their neighbours (series_interval); nothing of a single step.
  std::optional<std::int64_t> cost_low_ns = {};
  std::optional<std::int64_t> cost_high_ns = {};

  std::vector<int> ranks() const;  // it and those as late, by number

  bool may_be_chance() const noexcept { return cost_low_ns && *cost_low_ns <= 0; }
  // Not only not refuted: there are steps enough to tell.
  bool is_sure() const noexcept { return cost_low_ns && *cost_low_ns > 0; }
};

// A late rank, and why it is.
struct Straggler : LateRank {
  std::string phase = {};  // that it does longer than the others; empty: none explains the cost
};

// As the phase of a straggler: computing in no phase alone, and work of the host outside every
// phase.
inline constexpr const char* kComputing = "computing";
inline constexpr const char* kOtherWork = "other";

// "in forward", "in other work of the host"; empty without a phase.
std::string phase_text(const std::string& phase);

// "rank 1", "ranks 1 and 3", "ranks 1, 3 and 5"; of more than eight the first and how many more.
std::string ranks_text(const std::vector<int>& ranks);
std::string ranks_text(const LateRank& late);

// Several ranks that are late alike: they lie apart from the others (a gap in the waits of all
// steps four times as wide as what is between them), they are no more than half, and in each step,
// in the mean, the one of them that waited longest waited less than any other rank: sure at 95 %.
// The cost is of the last one of them. Nothing where there are none.
std::optional<LateRank> late_group(const std::vector<StepWaits>& steps);

// Of the rank that waited least in all. All steps hold the same two or more ranks; there is one.
LateRank least_waiting_rank(const std::vector<StepWaits>& steps);

// The mean over the steps of what the last rank of each, whichever it is, costs each of the others
// (their median).
std::int64_t cost_of_last_ranks(const std::vector<StepWaits>& steps);

// Of what last ranks cost, the share of the steps where it was one of these; 0 where nothing costs.
double share_of_costs(const std::vector<StepWaits>& steps, const std::vector<int>& ranks);

// Last in more steps than chance explains, although the mean of its cost is not sure: a few steps
// scatter too much for it.
struct UsuallyLast {
  int rank = 0;
  std::int64_t median_cost_ns = 0;  // of a step, to the median of the others
  std::int64_t steps = 0;
  std::int64_t steps_last = 0;
};

// The rank that is last in three steps of four or more, where a binomial test says that it is not
// one of equals: 95 %, with Bonferroni's correction for the choice among all. The test takes steps
// for independent, which neighbours are not: what it finds is said as seen, not as sure.
std::optional<UsuallyLast> usually_last_rank(const std::vector<StepWaits>& steps);

// One of three, or none.
struct RankJudgement {
  std::optional<LateRank> late = {};
  std::optional<UsuallyLast> usually_last = {};  // there is none that is sure
  // Nor is there one of those, and still the others wait for whoever is last: at this cost.
  std::optional<std::int64_t> rotating_ns_per_step = {};
};

// A rank, or several alike, are late only where that costs at least 2 % of a step, chance does not
// explain it, and they are behind most (60 %) of what last ranks cost. One that is only usually
// last costs as much in the median. Waiting for whoever is last that costs less than 2 % is not
// worth a word.
RankJudgement judge_ranks(const std::vector<StepWaits>& steps, double step_ns);

}  // namespace sidestream::statistics
