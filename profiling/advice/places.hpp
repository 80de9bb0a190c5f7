// Where in the timeline a finding can be seen best: the longest event of its kind.
#pragma once

#include <map>

#include "profiling/advice/facts.hpp"

namespace sidestream::advice {

// Times as in report.json: on the clock that all ranks share, from the first event on. Kinds
// without an event are not there.
std::map<PlaceKind, Place> longest_places(const analysis::Analysis& all);

}  // namespace sidestream::advice
