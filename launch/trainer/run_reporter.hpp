// Everything that a run writes for people and programs: progress, metrics.jsonl, TensorBoard,
// run.json. Rank 0 alone has one that writes; on the other ranks it does nothing.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/exit_code.hpp"
#include "launch/options/train_options.hpp"
#include "launch/trainer/checkpointer.hpp"
#include "launch/trainer/mfu.hpp"
#include "launch/trainer/run_record.hpp"
#include "launch/trainer/stepper.hpp"
#include "launch/trainer/training_state.hpp"
#include "profiling/record/verdict.hpp"

namespace sidestream::launch {

class RunReporter {
 public:
  struct Calls {
    // The peak that lines show instead of this process's; empty or nothing: this process's.
    std::function<std::optional<std::int64_t>()> device_memory = {};
    // Before a file of the folder is opened: throws where that is not this run's any more.
    std::function<void()> hold_folder = {};
  };

  // Does nothing.
  RunReporter();
  // Writes into the run directory of the options. Throws Error when it cannot.
  RunReporter(const TrainOptions& options, const RunRecord& record, const Mfu& mfu,
              const TrainingState& start, Calls calls);
  RunReporter(RunReporter&&) noexcept;
  RunReporter& operator=(RunReporter&&) noexcept;
  ~RunReporter();

  void info(const std::string& line);
  // When they have come: before step() of their own step, or before that of the next.
  void numbers(const StepNumbers& numbers);
  // After every step; decides by --log-every what is written. A line that has no numbers yet is
  // written when they come.
  void step(const TrainingState& state, const StepOutcome& outcome, std::optional<double> val_loss);
  // The first step is about to begin; restoring has taken so long.
  void started(const TrainingState& state, double restore_s);
  // Time outside of steps.
  void evaluated(double seconds);
  void waited_for_save(double seconds);
  void target_reached(const TrainingState& state, double val_loss);
  // All steps are done and --target-val-loss was never met.
  void target_missed(const TrainingState& state);
  void saved(const SavedCheckpoint& saved);
  // Appends a line to incidents.jsonl.
  void incident(const nlohmann::ordered_json& incident);
  // The run goes on from an earlier step: lines of later ones go.
  void rewind(const TrainingState& state);
  // What bounds the run; nothing: not measured.
  void verdict(const std::optional<record::RunVerdict>& verdict);
  void graph_used(const GraphUse& use);
  // At the end; writes the last run.json. Throws Error when it cannot.
  void finish(core::ExitCode code, const TrainingState& state);
  // The same after a failure, which nothing may hide: what goes wrong here becomes a warning,
  // unless it goes wrong for the reason that the failure names (a full disk). Comes back within
  // seconds, whatever the file system does. The last call.
  void finish_failed(const std::exception& failure, const TrainingState& state) noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sidestream::launch
