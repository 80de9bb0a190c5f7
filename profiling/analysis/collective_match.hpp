// Which collective of one rank is which of another, and how long each rank waited in it.
//
// Within a process group (or, without one, a stream that carries collectives) they
// come in the same order on every rank; where the trace has sequence numbers these
// decide. Collectives without one go by their order between two that are matched by their number:
// where ranks have different numbers of them there, in any step or outside of steps, by their order
// within each step in which all ranks have as many. Where that would make one of an all-gather and
// a reduce-scatter, they are not matched. The shortest of a matched collective is what the transfer
// took, the rest of each rank's own duration is waiting. Durations need no common clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiling/trace/trace_set.hpp"

namespace sidestream::analysis {

struct CollectivePart {
  int rank = 0;
  std::size_t timeline = 0;  // index into the set
  std::size_t row = 0;
  std::int64_t start_ns = 0;  // on the rank's own clock
  std::int64_t duration_ns = 0;

  std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
};

struct MatchedCollective {
  std::string window;
  std::string group;       // "pg:0:[0, 1]", "stream#0", "sidestream"
  std::int64_t index = 0;  // its sequence number; its place, where not all of the group have one
  std::string kernel;      // as the first rank has it
  bool same_kernel = true;
  std::vector<CollectivePart> parts;  // by rank; two or more
  std::int64_t transfer_ns = 0;

  // Waited least, therefore came last.
  const CollectivePart& last() const;
};

// A group of which some collectives could not be matched: only one rank was recorded, counts
// differ, or numbers do.
struct UnmatchedGroup {
  std::string window;
  std::string group;
  std::map<int, std::int64_t> count_of_rank;
  std::int64_t matched = 0;        // of each rank: by number, or of steps in which all have as many
  bool operations_differ = false;  // one rank has an all-gather where another has something else
};

struct CollectiveMatches {
  std::vector<MatchedCollective> matched;
  std::vector<UnmatchedGroup> unmatched;
};

CollectiveMatches match_collectives(const trace::TraceSet& set);

}  // namespace sidestream::analysis
