// The order in which a step's calls come: every micro-step, the sums, the update. Who calls out of
// order is told what was expected.
#pragma once

namespace sidestream::parallel {

enum class StepPhase {
  kIdle,          // between steps
  kAccumulating,  // in a micro-step that is not the last
  kLastBackward,  // in the last one: collectives may be in flight
  kReduced,       // sums are there, to be updated from
};

class StepOrder {
 public:
  explicit StepOrder(int micro_steps) : micro_steps_(micro_steps) {}

  // Whether this micro-step may begin. The first one does not while others are under way: what they
  // have gathered would be lost unseen. Throws Error.
  void require_next(int micro_step) const;
  // Whether the gradients of this step may be dropped. Throws Error.
  void require_droppable() const;
  // `call` may come in this phase only, which `after` leads to. Throws Error.
  void require(StepPhase phase, const char* call, const char* after) const;

  void begin(int micro_step) noexcept;
  void reduced() noexcept { phase_ = StepPhase::kReduced; }
  void end() noexcept { phase_ = StepPhase::kIdle; }

  bool is_in_micro_step() const noexcept {
    return phase_ == StepPhase::kAccumulating || phase_ == StepPhase::kLastBackward;
  }
  bool is_in_last() const noexcept { return phase_ == StepPhase::kLastBackward; }
  bool is_reduced() const noexcept { return phase_ == StepPhase::kReduced; }
  int micro_step() const noexcept { return micro_step_; }  // of the last begin()

 private:
  int micro_steps_;
  int micro_step_ = 0;
  StepPhase phase_ = StepPhase::kIdle;
};

}  // namespace sidestream::parallel
