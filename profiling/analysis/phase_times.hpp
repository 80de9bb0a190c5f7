// How long a rank spent in each phase of its steps, by Sidestream's ranges on host threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

// Phase -> nanoseconds over the whole trace but singular steps; a range inside another one of the
// same name counts once. Collectives are left out: their length is the others' doing.
std::map<std::string, std::int64_t> phase_times(const RankView& rank);

// Of single steps, singular or not. Looks at the whole file once, however many steps are asked for.
class PhasesOfSteps {
 public:
  explicit PhasesOfSteps(const RankView& rank);

  std::map<std::string, std::int64_t> times_in(const StepRow& step) const;

 private:
  std::map<std::string, IntervalSet> sets_;
};

}  // namespace sidestream::analysis
