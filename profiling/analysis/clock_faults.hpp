// Signs that a clock of a trace ran backwards or that its clocks do not agree: times that cannot be
// right together.
#pragma once

#include <cstdint>
#include <string>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

// Each above 100 us: profilers round, and clocks of host and device are that far apart at times.
struct ClockFaults {
  std::uint64_t steps = 0;      // begin before the step of the number before has ended
  std::uint64_t crossings = 0;  // calls of a host thread that begin inside another and end after it
  std::uint64_t launches = 0;   // device work that begins before the call that launched it
  std::uint64_t lengths = 0;    // operators and device work longer than all steps from end to end

  bool any() const noexcept { return steps + crossings + launches + lengths > 0; }
};

ClockFaults clock_faults(const trace::RankTimeline& timeline);

// "3 steps begin before ...": for a warning. Empty without a fault.
std::string describe(const ClockFaults& faults);

}  // namespace sidestream::analysis
