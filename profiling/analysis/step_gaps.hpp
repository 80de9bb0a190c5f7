// What a rank does between its steps: from the end of a step to the beginning of the next one. A
// step's budget does not have it, and the other ranks wait for it inside theirs.
#pragma once

#include <cstdint>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct StepGaps {
  std::int64_t gaps = 0;  // between steps whose numbers follow each other
  std::int64_t total_ns = 0;
  std::int64_t unnamed_ns = 0;  // of it, outside any phase and any collective

  void add(const StepGaps& other);
};

// Of one file. Gaps with an evaluation or a checkpoint in them are left out, as steps with a tag
// are.
StepGaps step_gaps(const RankView& rank);

}  // namespace sidestream::analysis
