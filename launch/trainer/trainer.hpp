// The training loop: steps, evaluation, checkpoints, and when to stop.
#pragma once

#include <cstdint>
#include <optional>

#include "core/data/sample_order.hpp"
#include "core/faults/fault_injector.hpp"
#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"
#include "launch/recording/run_recording.hpp"
#include "launch/trainer/checkpointer.hpp"
#include "launch/trainer/evaluator.hpp"
#include "launch/trainer/run_reporter.hpp"
#include "launch/trainer/stepper.hpp"
#include "launch/trainer/training_state.hpp"
#include "launch/watch/heartbeat.hpp"

namespace sidestream::launch {

// What the loop works with; all outlive it.
struct TrainerParts {
  model::LanguageModel& model;
  parallel::DataParallel& replicas;
  Stepper& steps;
  const Evaluator* evaluator;  // null: no validation data
  Checkpointer& checkpointer;
  RunReporter& reporter;
  RunRecording& recording;
  faults::FaultInjector& faults;
  Heartbeat& heartbeat;
  AnomalyJudge& judge;
  const data::SampleOrder& order;  // of the batches, to name those of an anomaly
};

enum class StopReason { kAllSteps, kTargetReached, kRequested, kRollback };

class Trainer {
 public:
  Trainer(const TrainOptions& options, Session& session, const TrainerParts& parts,
          TrainingState& state)
      : options_(options),
        session_(session),
        parts_(parts),
        state_(state),
        saved_step_(state.step) {}

  // Collective. Runs from the state's step to the last one, to --target-val-loss, or until a rank
  // is asked to stop; a checkpoint of the last step is there afterwards. Or until an anomaly asks
  // to go back to a checkpoint (kRollback): nothing is saved then. Throws what a step, an
  // evaluation or a save throws; AgreedError (numerics) for an anomaly that ends the run.
  StopReason run();

 private:
  std::optional<StopReason> after_step(const StepOutcome& outcome);
  std::optional<StopReason> take_numbers(const StepOutcome& outcome);
  std::optional<StopReason> meet(const StepNumbers& numbers);
  std::optional<double> evaluate_if_due();
  void check_drift();
  void save(Meanwhile meanwhile);
  void finish_save();
  void note_saved(const SavedCheckpoint& saved);

  const TrainOptions& options_;
  Session& session_;
  TrainerParts parts_;
  TrainingState& state_;  // the caller's: what was reached is known after a failure too
  std::int64_t saved_step_;
  std::int64_t checked_step_ = -1;  // when the replicas were compared last
  std::int64_t skipped_in_a_row_ = 0;
};

}  // namespace sidestream::launch
