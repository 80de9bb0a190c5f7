#include "launch/trainer/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/base/error.hpp"
#include "launch/trainer/capture_window.hpp"
#include "launch/trainer/incident.hpp"

namespace sidestream::launch {
namespace {

using core::AgreedError;
constexpr auto kNumerics = core::ExitCode::kNumerics;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

bool due(std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; }

}  // namespace

StopReason Trainer::run() {
  std::optional<StopReason> stop;
  CaptureWindow capture = CaptureWindow::from_environment();
  if (state_.step == 0 && options_.steps == 0) save(Meanwhile::kWaiting);  // the initial weights
  while (!stop && state_.step < options_.steps) {
    capture.before(state_.step + 1);
    parts_.recording.before(state_.step + 1);
    const StepOutcome outcome =
        parts_.steps.run(state_.step + 1, [this] { return session_.stop_requested(); });
    state_.step += 1;
    parts_.recording.after(state_.step, outcome.step_ns, outcome.reader_ns);
    capture.after(state_.step);
    stop = take_numbers(outcome);
    state_.samples += state_.samples_per_step;
    state_.training_s += static_cast<double>(outcome.step_ns) * 1e-9;
    if (!stop) stop = after_step(outcome);
    if (stop == StopReason::kRollback) return *stop;
  }
  if (saved_step_ != state_.step) save(Meanwhile::kWaiting);
  finish_save();
  parts_.heartbeat.beat(ranges::Phase::kLog, std::max<std::int64_t>(1, state_.step));  // the rest
  if (!stop && options_.evaluation.target_val_loss) parts_.reporter.target_missed(state_);
  return stop.value_or(StopReason::kAllSteps);
}

// The line of a step is written before the next one can end the run.
std::optional<StopReason> Trainer::take_numbers(const StepOutcome& outcome) {
  for (const StepNumbers& numbers : outcome.numbers) {
    if (const auto stop = meet(numbers)) return stop;
    parts_.reporter.numbers(numbers);
  }
  return std::nullopt;
}

// Writes an anomaly down, then ends the run, goes on or goes back, as the policies say.
std::optional<StopReason> Trainer::meet(const StepNumbers& numbers) {
  if (numbers.updated) skipped_in_a_row_ = 0;
  if (!numbers.anomaly) return std::nullopt;
  const Anomaly& anomaly = *numbers.anomaly;
  const AnomalyPolicy policy = parts_.judge.policy_for(anomaly);
  const comm::Communicator& ranks = session_.communicator();
  const auto steps_since = static_cast<std::uint64_t>(state_.step - anomaly.values.step);
  const std::uint64_t in_order = state_.samples - steps_since * state_.samples_per_step;
  const bool fixed = options_.data.fix_batch;  // one batch, in every micro-step
  const BatchOfStep batch{.first_index = fixed ? 0 : in_order,
                          .batch_size = options_.data.batch_size_per_rank,
                          .grad_accumulation = fixed ? 1 : options_.parallel.grad_accumulation,
                          .ranks = ranks.size()};
  parts_.reporter.incident(incident_of(anomaly, policy, batch, parts_.order));
  if (!numbers.updated) ++state_.skipped;
  if (policy == AnomalyPolicy::kWarn || policy == AnomalyPolicy::kOff) {
    parts_.reporter.info("warning: " + anomaly.text());
    return std::nullopt;
  }
  if (policy == AnomalyPolicy::kRollback) return StopReason::kRollback;
  const bool too_many = ++skipped_in_a_row_ > options_.numerics.max_skipped_steps;
  if (policy == AnomalyPolicy::kStop || too_many) {
    state_.step = anomaly.values.step - 1;  // it has not been taken, nor has one after it
    throw AgreedError(policy == AnomalyPolicy::kStop
                          ? stop_text(anomaly)
                          : limit_text(anomaly, options_.numerics.max_skipped_steps),
                      kNumerics);
  }
  parts_.reporter.info(anomaly.text() + ": its update is left out");
  return std::nullopt;
}

void Trainer::check_drift() {
  if (checked_step_ == state_.step) return;
  checked_step_ = state_.step;
  try {
    parts_.replicas.check_replicas();
  } catch (const core::NumericsError& error) {  // all ranks throw the same
    throw AgreedError(fmt::format("step {}: {}", state_.step, error.what()), kNumerics);
  }
}

std::optional<StopReason> Trainer::after_step(const StepOutcome& outcome) {
  if (due(options_.numerics.drift_every, state_.step)) check_drift();
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
  if (outcome.save_stage_done) {
    const Stopwatch watch;
    const auto saved = parts_.checkpointer.advance();
    parts_.reporter.waited_for_save(watch.seconds());
    if (saved) note_saved(*saved);
  }
  if (due(options_.checkpoint.every, state_.step))
    save(state_.step < options_.steps ? Meanwhile::kTraining : Meanwhile::kWaiting);
  return std::nullopt;
}

std::optional<double> Trainer::evaluate_if_due() {
  const bool last = state_.step == options_.steps;
  if (parts_.evaluator == nullptr || options_.evaluation.every == 0) return std::nullopt;
  if (!last && !due(options_.evaluation.every, state_.step)) return std::nullopt;
  parts_.heartbeat.beat(ranges::Phase::kEval, state_.step);
  parts_.faults.pass(faults::Point::kEvaluation, state_.step);
  const Stopwatch watch;
  const double val_loss = parts_.evaluator->run(parts_.model, session_.communicator());
  parts_.reporter.evaluated(watch.seconds());
  return val_loss;
}

void Trainer::save(Meanwhile meanwhile) {
  parts_.heartbeat.beat(ranges::Phase::kCheckpoint, std::max<std::int64_t>(1, state_.step));
  if (options_.numerics.drift_every > 0) check_drift();  // no checkpoint of replicas that differ
  state_.recent_losses = parts_.judge.losses().values();
  state_.recent_norms = parts_.judge.norms().values();
  state_.bucket_order = parts_.replicas.observed_bucket_order();
  if (parts_.replicas.loss_scale().defined())
    state_.loss_scale = parts_.replicas.loss_scale_state();
  const Stopwatch watch;
  const std::vector<SavedCheckpoint> all = parts_.checkpointer.save(state_, meanwhile);
  parts_.reporter.waited_for_save(watch.seconds());
  for (const SavedCheckpoint& saved : all) note_saved(saved);
  saved_step_ = state_.step;
}

void Trainer::finish_save() {
  const Stopwatch watch;
  const auto saved = parts_.checkpointer.finish();
  parts_.reporter.waited_for_save(watch.seconds());
  if (saved) note_saved(*saved);
}

void Trainer::note_saved(const SavedCheckpoint& saved) { parts_.reporter.saved(saved); }

}  // namespace sidestream::launch
