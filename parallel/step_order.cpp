#include "parallel/step_order.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace sidestream::parallel {

void StepOrder::require_next(int micro_step) const {
  const int expected = is_in_micro_step() ? micro_step_ + 1 : 0;
  if (!is_in_last() && micro_step == expected) return;
  throw core::Error(fmt::format(
      "begin_micro_step({}) came out of order: expected {} of {} micro-steps.{}", micro_step,
      is_in_last() ? "finish_backward() after the last"
                   : fmt::format("begin_micro_step({})", expected),
      micro_steps_,
      phase_ == StepPhase::kAccumulating && micro_step == 0
          ? " To begin the step anew, without the gradients so far, call drop_gradients() first."
          : ""));
}

void StepOrder::require_droppable() const {
  if (!is_in_last()) return;
  throw core::Error(
      "drop_gradients() came out of order: expected it before the last micro-step, whose "
      "gradients may be on their way to the other ranks; or after finish_backward().");
}

void StepOrder::require(StepPhase phase, const char* call, const char* after) const {
  if (phase_ == phase) return;
  throw core::Error(fmt::format("{} came out of order: expected it after {}.", call, after));
}

void StepOrder::begin(int micro_step) noexcept {
  micro_step_ = micro_step;
  phase_ = micro_step == micro_steps_ - 1 ? StepPhase::kLastBackward : StepPhase::kAccumulating;
}

}  // namespace sidestream::parallel
