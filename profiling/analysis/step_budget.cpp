#include "profiling/analysis/step_budget.hpp"

namespace sidestream::analysis {

BudgetSets::BudgetSets(const DeviceActivity& activity)
    : compute_(activity.compute),
      communication_(activity.communication),
      copies_(activity.copies),
      overlapped_communication_(communication_ & compute_),
      exposed_communication_(communication_ - compute_),
      exposed_copies_(copies_ - (compute_ | communication_)),
      busy_(activity.busy()) {}

StepBudget BudgetSets::budget_of(Interval window) const {
  return {.window_ns = window.length_ns(),
          .compute_ns = compute_.length_within_ns(window),
          .communication_ns = communication_.length_within_ns(window),
          .copies_ns = copies_.length_within_ns(window),
          .overlapped_comm_ns = overlapped_communication_.length_within_ns(window),
          .exposed_comm_ns = exposed_communication_.length_within_ns(window),
          .exposed_memcpy_ns = exposed_copies_.length_within_ns(window),
          .idle_ns = window.length_ns() - busy_.length_within_ns(window)};
}

}  // namespace sidestream::analysis
