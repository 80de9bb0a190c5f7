// Where the time of a step went, as four parts that add up to the step exactly:
//   compute + exposed communication + exposed copies + idle = window
// Exposed communication is communication without compute
// beside it; exposed copies have neither beside them.
#pragma once

#include <cstdint>

#include "profiling/analysis/device_activity.hpp"

namespace sidestream::analysis {

struct StepBudget {
  std::int64_t window_ns = 0;
  std::int64_t compute_ns = 0;
  std::int64_t communication_ns = 0;  // overlapped + exposed
  std::int64_t copies_ns = 0;
  std::int64_t overlapped_comm_ns = 0;
  std::int64_t exposed_comm_ns = 0;
  std::int64_t exposed_memcpy_ns = 0;
  std::int64_t idle_ns = 0;
};

// Everything that the budgets of one rank's windows share.
class BudgetSets {
 public:
  explicit BudgetSets(const DeviceActivity& activity);

  StepBudget budget_of(Interval window) const;
  const IntervalSet& busy() const noexcept { return busy_; }
  const IntervalSet& exposed_communication() const noexcept { return exposed_communication_; }
  const IntervalSet& overlapped_communication() const noexcept { return overlapped_communication_; }

 private:
  IntervalSet compute_, communication_, copies_;
  IntervalSet overlapped_communication_, exposed_communication_, exposed_copies_, busy_;
};

}  // namespace sidestream::analysis
