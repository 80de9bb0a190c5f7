// The change of the step time as parts that add up to it; what no part measures has a name too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiling/verify/convergence.hpp"
#include "profiling/verify/paired_ratio.hpp"
#include "profiling/verify/recorded_run.hpp"

namespace sidestream::verify {

struct Part {
  std::string name;
  double base_ms = 0;  // of a typical step, medians over the runs
  double fresh_ms = 0;
  // Of the mean change over the blocks: that of medians lies beside it where a block stands out.
  std::optional<DifferenceInterval> interval_ms = {};
  double change_ms() const { return fresh_ms - base_ms; }
};

// Waiting for data, exposed communication, and the rest: forward, backward, optimizer, and all else
// of the step. The parts of each side add up to its step. Steps after `warm_up` count. Empty when a
// run has no such step.
std::vector<Part> parts_of_change(const std::vector<RunPair>& pairs, int warm_up);

}  // namespace sidestream::verify
