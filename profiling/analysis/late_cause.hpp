// Why a rank comes late to the collectives in which the others wait for it: what it does longer
// than the median of the others, where that explains half of what it costs them.
//
// Asked in this order, because the first ones say most:
// - a phase of Sidestream's, or work between steps, by name
// - a range of the user's on the thread of the steps, without the communication in it that nothing
//   hides; the shortest of those that explain about as much, and none that is a whole step
// - computing, or other work of the host: idle time outside collectives
// - a collective of Sidestream's own: it comes late to it, and to nothing before it.
// The length of a collective explains nothing: the last rank's own is the shortest, and those of
// the others are waiting for it. Idle time that the collective itself ends is not the host's: a
// thread that waits for a collective of its own that has not begun looks as if it did other work.
#pragma once

#include <string>
#include <vector>

#include "profiling/analysis/collective_match.hpp"
#include "profiling/analysis/step_table.hpp"
#include "profiling/statistics/late_rank.hpp"

namespace sidestream::analysis {

// Work between steps, outside any phase, as the phase of a straggler.
inline constexpr const char* kBetweenSteps = "between steps";

// One of the above: statistics::kComputing and kOtherWork are two of the words. Empty: nothing in
// the traces explains it. `matches`: inside steps.
std::string cause_of_lateness(const std::vector<RankView>& ranks, const CollectiveMatches& matches,
                              const statistics::LateRank& late);

}  // namespace sidestream::analysis
