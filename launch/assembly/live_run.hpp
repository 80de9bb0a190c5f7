// A run on this rank once its data is open and its directory is claimed: builds, restores, trains,
// and goes back after an anomaly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "core/faults/fault_injector.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/device/device_session.hpp"
#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"
#include "launch/recording/run_recording.hpp"
#include "launch/trainer/checkpointer.hpp"
#include "launch/trainer/evaluator.hpp"
#include "launch/trainer/mfu.hpp"
#include "launch/trainer/run_reporter.hpp"
#include "launch/trainer/trainer.hpp"
#include "launch/watch/heartbeat.hpp"
#include "model/language_model.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

class LiveRun {
 public:
  // Collective; all outlive it. `hold`: of make_hold().
  LiveRun(Session& session, const TrainOptions& options, const DataSources& sources,
          const DeviceSession& device, std::function<void()> hold,
          std::shared_ptr<faults::FaultInjector> faults);

  // From a checkpoint, from the weights of a folder (empty: none), or from random ones. Collective.
  // `notes` get what was set aside. Throws AgreedError.
  TrainingState restore(const std::optional<checkpoint::Checkpoint>& checkpoint,
                        const std::filesystem::path& initial_weights,
                        std::vector<std::string>& notes);

  // Collective. Throws what the trainer throws.
  StopReason train(TrainingState& state, RunReporter& reporter, const Mfu& mfu);

 private:
  model::LanguageModel& initialised();
  void tell_what_is_left_out(RunReporter& reporter) const;
  StopReason train_on(TrainingState& state, const std::optional<Evaluator>& evaluator,
                      RunReporter& reporter, RunRecording& recording);
  void go_back(TrainingState& state, RunReporter& reporter);
  void finish_save_after(const core::AgreedError& error, RunReporter& reporter);
  void leave_records(RunRecording& recording, RunReporter& reporter) const;
  void count_rollback(std::int64_t to_step, std::int64_t bad_step);
  void give_judge(const TrainingState& state);
  void clear_way(std::int64_t step, std::vector<std::string>& notes) const;
  CheckpointerConfig checkpointer_config() const;
  trace::RunFigures figures_of(const Mfu& mfu) const;
  std::optional<record::RunVerdict> verdict(std::optional<double> processor_wait);
  std::filesystem::path flight_folder(std::int64_t step) const;
  std::uint64_t samples_per_step() const;
  std::optional<Evaluator> make_evaluator() const;

  Session& session_;
  const TrainOptions& options_;
  std::shared_ptr<Heartbeat> heartbeat_;
  std::shared_ptr<faults::FaultInjector> faults_;
  std::shared_ptr<AnomalyJudge> judge_;
  const DataSources& sources_;
  const DeviceSession& device_;
  std::function<void()> hold_;
  std::shared_ptr<model::LanguageModel> model_;
  parallel::DataParallel replicas_;
  Checkpointer checkpointer_;
  std::int64_t rollback_to_ = -1;  // and how often in a row
  std::int64_t rollbacks_ = 0;
  double restore_s_ = 0;
};

}  // namespace sidestream::launch
