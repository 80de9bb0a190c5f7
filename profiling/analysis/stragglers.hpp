// The rank that the others wait for. Found by least waiting in matched
// collectives, which needs no common clock: who comes last waits least.
//
// A rank is named only when it costs the others something: its waiting is below that of every other
// rank by at least 2 % of a step, and it came last in most of the collectives, weighted by the
// waiting they caused. A healthy run has none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/collective_match.hpp"
#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct Straggler {
  int rank = 0;
  std::string phase;  // what this rank does longer than the others; empty: no phases in the trace
  std::int64_t cost_ns_per_step = 0;
};

// Total waiting of each rank in matched collectives.
std::map<int, std::int64_t> waiting_of_ranks(const CollectiveMatches& matches);

std::optional<Straggler> find_straggler(const std::vector<RankView>& ranks,
                                        const CollectiveMatches& matches);

}  // namespace sidestream::analysis
