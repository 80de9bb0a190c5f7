#include "launch/trainer/trainer.hpp"

#include "launch/trainer/capture_window.hpp"

namespace sidestream::launch {
namespace {

bool due(std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; }

}  // namespace

StopReason Trainer::run() {
  std::optional<StopReason> stop;
  CaptureWindow capture = CaptureWindow::from_environment();
  if (state_.step == 0 && options_.steps == 0) save();  // the initial weights
  while (!stop && state_.step < options_.steps) {
    capture.before(state_.step + 1);
    parts_.recording.before(state_.step + 1);
    const StepOutcome outcome =
        parts_.steps.run(state_.step + 1, [this] { return session_.stop_requested(); });
    state_.step += 1;
    parts_.recording.after(state_.step, outcome.step_ns);
    capture.after(state_.step);
    state_.samples += state_.samples_per_step;
    state_.training_s += static_cast<double>(outcome.step_ns) * 1e-9;
    stop = after_step(outcome);
  }
  if (saved_step_ != state_.step) save();
  return stop.value_or(StopReason::kAllSteps);
}

std::optional<StopReason> Trainer::after_step(const StepOutcome& outcome) {
  const std::optional<double> val_loss = evaluate_if_due();
  parts_.reporter.step(state_, outcome, val_loss);
  const auto& target = options_.evaluation.target_val_loss;
  if (val_loss && target && *val_loss <= *target) {
    parts_.reporter.target_reached(state_, *val_loss);
    return StopReason::kTargetReached;
  }
  if (outcome.stop_requested && state_.step < options_.steps) {
    parts_.reporter.info("asked to stop: saving");
    return StopReason::kRequested;
  }
  if (due(options_.checkpoint.every, state_.step)) save();
  return std::nullopt;
}

std::optional<double> Trainer::evaluate_if_due() {
  const bool last = state_.step == options_.steps;
  if (parts_.evaluator == nullptr || options_.evaluation.every == 0) return std::nullopt;
  if (!last && !due(options_.evaluation.every, state_.step)) return std::nullopt;
  return parts_.evaluator->run(parts_.model, session_.communicator());
}

void Trainer::save() {
  state_.bucket_order = parts_.replicas.bucket_order();
  parts_.checkpointer.save(state_);
  saved_step_ = state_.step;
  parts_.reporter.saved(state_);
}

}  // namespace sidestream::launch
