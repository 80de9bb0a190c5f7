// How long each rank waited for the others in a step.
//
// A rank waits at the beginning of its part of a matched collective, until the last rank comes.
// Waiting counts once where several collectives wait at the same time. It costs no more than the
// communication of that step which nothing hides: a wait behind compute may still push what comes
// after it into the open.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "profiling/analysis/collective_match.hpp"
#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct RankWait {
  std::int64_t waited_ns = 0;  // hidden or not
  std::int64_t costly_ns = 0;  // at most
};

// The same step on several ranks.
struct StepWaiting {
  std::map<int, RankWait> of_rank;
};

// Steps without tags (all where every one has some), in the order of windows and steps. Waiting
// between steps is not among it: there ranks wait for one that saves or evaluates.
std::vector<StepWaiting> waiting_in_steps(const std::vector<RankView>& ranks,
                                          const CollectiveMatches& matches);

// The sum over the steps of each file, by its place in the set; files without a matched collective
// are not among them.
std::map<std::size_t, std::int64_t> waited_in_files(const std::vector<RankView>& ranks,
                                                    const CollectiveMatches& matches);

}  // namespace sidestream::analysis
