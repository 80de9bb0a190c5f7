// Where a run stood when its recordings ended in the middle of a step: what each rank was inside of
// and since when, from the ranges that are still open. A recorder writes them when a collective
// times out, and on request.
//
// Who waits has a collective in flight; a rank that has none is what the others wait for, and where
// all have one, those that are behind the others by its number in the order of collectives.
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
  std::int64_t sequence = -1;  // of the collective among those of its communicator; -1: not known
  std::int64_t since_ns = 0;   // that the collective, else the phase, else the step has been open
  // Evaluating or saving, which may well take many steps, and for how long; empty: neither.
  std::string aside = {};
  std::int64_t aside_ns = 0;

  bool waits() const noexcept { return !collective.empty(); }
};

struct Hang {
  std::vector<StandingRank> ranks =
      {};  // whose recordings ended so; those that wait for none first
  // Ranks of the run of which no recording reaches into the step in which the others stand, nor the
  // one before: they may have ended or been killed, and then it is they that the others wait for.
  std::vector<int> without_records = {};
  // Ranks whose recordings reach that far and are in no step: before the one in which the others
  // stand, or past it; the latter hold nobody up.
  std::vector<int> between_steps = {};
  std::vector<int> past = {};
  std::int64_t longest_ns = 0;
  // As long as several steps, and not the instant at which somebody looked: that there is a hang,
  // not whose it is. Who evaluates or saves, and whoever waits meanwhile, goes by how long the
  // finished ones took; where there are none nobody can tell.
  bool is_sure = false;

  // Of a hang that is sure: whom those that wait wait for. Empty where nobody waits, and where
  // ranges cannot tell.
  std::vector<int> awaited() const;
  // Every rank of the run, two or more, is inside a collective or past it.
  bool all_wait() const;
  // ... and all inside the same one.
  bool all_in_one() const;
};

// Nothing where every rank finished the last step that it began.
std::optional<Hang> find_hang(const trace::TraceSet& set, const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
