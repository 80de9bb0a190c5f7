// The rank that the others wait for. Found by least waiting in matched
// collectives, which needs no common clock: who comes last waits least.
//
// Judged step by step, over the steps without tags: in each one it is known what each rank's
// waiting cost it (step_waiting.hpp), and how much less one rank waited than the median of the
// others. A rank is named only when
// - that costs the others at least 2 % of a step in the mean,
// - it came last in most of the collectives, weighted by the waiting they caused, and
// - chance does not explain it: from two steps on the 95 % interval of the cost (Student's, over
//   the steps or, where it is wider, over batches of neighbouring ones, with Bonferroni's
//   correction because the rank was chosen among all) is above 0.
// Where the interval reaches 0 because a few steps scatter, a rank that is last in more steps than
// chance explains (a binomial test) is said to be usually last: that is no straggler for advice.
// A healthy run has none. On a machine with other work now this rank is late, now that one: the
// waiting is real and nobody's fault, and it is said how much it is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/collective_match.hpp"
#include "profiling/analysis/step_table.hpp"
#include "profiling/statistics/late_rank.hpp"

namespace sidestream::analysis {

struct StragglerSearch {
  std::optional<statistics::Straggler> straggler = {};  // its phase: late_cause.hpp
  // statistics::RankJudgement
  std::optional<statistics::UsuallyLast> usually_last = {};
  std::optional<std::int64_t> rotating_ns_per_step = {};
};

StragglerSearch find_straggler(const std::vector<RankView>& ranks,
                               const CollectiveMatches& matches);

}  // namespace sidestream::analysis
