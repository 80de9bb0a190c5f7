// The steps of a rank: host ranges `ProfilerStep#N`. A trace without
// them is one window, from the first device event to the last.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiling/analysis/device_activity.hpp"

namespace sidestream::analysis {

struct StepWindow {
  std::optional<std::int64_t> step;  // nothing: the whole trace
  Interval window;
  bool finished = true;  // no: the recording ended in it
};

// In rising order of time. Empty when there is nothing on the device either.
std::vector<StepWindow> step_windows(const trace::RankTimeline& timeline,
                                     const DeviceActivity& activity);

}  // namespace sidestream::analysis
