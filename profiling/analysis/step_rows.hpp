// Which rows of a file belong to the steps that statistics have room for: evaluations and saves
// between steps do not, and would be time of steps that never had it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

class StepRows {
 public:
  // `windows`: of those steps, on the rank's own clock. A file without steps has room for all rows.
  StepRows(const RankView& rank, IntervalSet windows);

  // A row of the host by its begin; work of a device by that of the call that launched it, for a
  // device is behind its host, and does what the last step queued after that step's end.
  bool contain(std::size_t row) const;

 private:
  bool begins_inside(std::size_t row) const;
  void find_late_work();

  const RankView& rank_;
  IntervalSet windows_;
  bool has_steps_;
  // Correlations: of calls outside the windows, and of calls inside whose work begins outside.
  std::unordered_set<std::uint64_t> foreign_, late_;
};

}  // namespace sidestream::analysis
