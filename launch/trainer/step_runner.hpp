// One optimizer step on the processor: batches, forward, backward, agreement of the ranks, update.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "comm/communicator.hpp"
#include "core/data/loader.hpp"
#include "core/faults/fault_injector.hpp"
#include "core/optim/gradient_scaler.hpp"
#include "core/optim/schedule.hpp"
#include "launch/trainer/loss_scale_news.hpp"
#include "launch/trainer/step_agreement.hpp"
#include "launch/trainer/stepper.hpp"
#include "launch/watch/heartbeat.hpp"
#include "model/language_model.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

struct StepRunnerConfig {
  std::uint64_t seed = 0;  // of dropout
  int grad_accumulation = 1;
  std::int64_t sequence_length = 0;
  optim::ScheduleConfig schedule = {};
  optim::LossScaleConfig loss_scale = {};  // the replicas'
  // Never null; plants nothing unless told.
  std::shared_ptr<faults::FaultInjector> faults = std::make_shared<faults::FaultInjector>();
  // Whether this rank's part of a save that is under way is done; asked in every vote.
  std::function<bool()> save_stage_done = [] { return false; };
  std::shared_ptr<Heartbeat> heartbeat = std::make_shared<Heartbeat>();    // never null
  std::shared_ptr<AnomalyJudge> judge = std::make_shared<AnomalyJudge>();  // never null
};

class StepRunner final : public Stepper {
 public:
  StepRunner(model::LanguageModel& model, parallel::DataParallel& replicas, data::Loader& loader,
             comm::Communicator& communicator, const StepRunnerConfig& config)
      : model_(model),
        replicas_(replicas),
        loader_(loader),
        communicator_(communicator),
        config_(config),
        loss_scale_news_(replicas.loss_scale_state()) {}

  // Collective. `stop_requested` tells, after backward, whether this rank was asked to stop.
  // Without an update where the judge of the run says so: then no weight has changed.
  StepOutcome run(std::int64_t step, const std::function<bool()>& stop_requested) override;

 private:
  double run_micro_step(std::int64_t step, int micro_step, StepOutcome& outcome);
  void update(double lr, const StepVerdict& verdict, StepNumbers& numbers);
  void take_update(std::int64_t step, double lr);
  void tell_loss_scale(StepNumbers& numbers);
  void seed_dropout(std::int64_t step, int micro_step) const;

  model::LanguageModel& model_;
  parallel::DataParallel& replicas_;
  data::Loader& loader_;
  comm::Communicator& communicator_;
  StepRunnerConfig config_;
  std::int64_t exposed_comm_ns_ = 0;  // of the step before, on this rank
  LossScaleNews loss_scale_news_;
};

}  // namespace sidestream::launch
