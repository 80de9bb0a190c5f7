// The rank that the others wait for. Found by least waiting in matched
// collectives, which needs no common clock: who comes last waits least.
//
// A rank is named only when it costs the others something: its waiting that may cost is below
// that of every other rank by at least 2 % of a step, and it came last in most of the collectives,
// weighted by the waiting they caused. Only collectives inside steps count. A healthy run has none.
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
  // What this rank does longer than the others; a collective, when it is late to that and no phase
  // explains it. Empty: no phases in the trace.
  std::string phase;
  std::int64_t cost_ns_per_step = 0;
};

// Total waiting of each rank in matched collectives, hidden behind compute or not.
std::map<int, std::int64_t> waiting_of_ranks(const CollectiveMatches& matches);
// The same of each file, by its place in the set.
std::map<std::size_t, std::int64_t> waiting_of_files(const CollectiveMatches& matches);

std::optional<Straggler> find_straggler(const std::vector<RankView>& ranks,
                                        const CollectiveMatches& matches);

}  // namespace sidestream::analysis
