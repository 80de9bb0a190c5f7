// The training loop: steps, evaluation, checkpoints, and when to stop.
#pragma once

#include <cstdint>
#include <optional>

#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"
#include "launch/recording/run_recording.hpp"
#include "launch/trainer/checkpointer.hpp"
#include "launch/trainer/evaluator.hpp"
#include "launch/trainer/run_reporter.hpp"
#include "launch/trainer/stepper.hpp"
#include "launch/trainer/training_state.hpp"

namespace sidestream::launch {

// What the loop works with; all outlive it.
struct TrainerParts {
  model::LanguageModel& model;
  parallel::DataParallel& replicas;
  Stepper& steps;
  const Evaluator* evaluator;  // null: no validation data
  const Checkpointer& checkpointer;
  RunReporter& reporter;
  RunRecording& recording;
};

enum class StopReason { kAllSteps, kTargetReached, kRequested };

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
  // is asked to stop; a checkpoint of the last step is there afterwards. Throws what a step, an
  // evaluation or a save throws.
  StopReason run();

 private:
  std::optional<StopReason> after_step(const StepOutcome& outcome);
  std::optional<double> evaluate_if_due();
  void save();

  const TrainOptions& options_;
  Session& session_;
  TrainerParts parts_;
  TrainingState& state_;  // the caller's: what was reached is known after a failure too
  std::int64_t saved_step_;
};

}  // namespace sidestream::launch
