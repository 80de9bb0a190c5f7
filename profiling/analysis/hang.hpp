// Where a run stood when its recordings ended in the middle of a step: what each rank was inside of
// and since when, from the ranges that are still open. A recorder writes them when a collective
// times out, and on request.
//
// Who waits has a collective in flight; a rank that has none is what the others wait for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct StandingRank {
  int rank = 0;
  std::optional<std::int64_t> step = {};  // that it was in; nothing: in none
  std::string phase = {};                 // the innermost; empty: in none
  std::string collective = {};            // in flight, the oldest; empty: none
  std::int64_t bucket = -1;
  std::int64_t since_ns = 0;  // that the collective, else the phase, else the step has been open

  bool waits() const noexcept { return !collective.empty(); }
};

struct Hang {
  std::vector<StandingRank> ranks =
      {};  // whose recordings ended so; those that wait for none first
  // Ranks of the run of which no recording reaches into the step in which the others stand, nor the
  // one before: they may have ended or been killed, and then it is they that the others wait for.
  std::vector<int> without_records = {};
  std::int64_t longest_ns = 0;
  // As long as several steps, and not the instant at which somebody looked: that there is a hang,
  // not whose it is.
  bool is_sure = false;

  // Whom the others wait for: ranks without a collective in flight, and those that left no
  // recording. Empty where every rank is inside a collective: a link between them fails, or a
  // process was stopped inside it, and ranges cannot tell which.
  std::vector<int> awaited() const;
  // Every rank is inside a collective, but not all inside the same.
  bool disagrees() const;
};

// Nothing where every rank finished the last step that it began.
std::optional<Hang> find_hang(const trace::TraceSet& set, const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
