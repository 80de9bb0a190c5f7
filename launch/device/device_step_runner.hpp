// One optimizer step on a GPU. It queues work and returns; nothing inside a step waits for the
// device, unless the policies of the run may leave an update out. The numbers of a step are read
// when the next one is queued, so that the device has work while the ranks vote and the host gets
// the step after that ready.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/cuda/handles.hpp"
#include "launch/device/device_step_parts.hpp"
#include "launch/device/graphed_step.hpp"
#include "launch/device/late_steps.hpp"
#include "launch/device/look.hpp"
#include "launch/trainer/stepper.hpp"

namespace sidestream::launch {

class DeviceStepRunner final : public Stepper {
 public:
  // Steps that the host may have queued beside the one that runs.
  static constexpr std::size_t kStepsAhead = 2;
  // Steps after which the ranks look at the latest.
  static constexpr std::int64_t kLongestSilence = 10;

  using LookAt = std::function<Look(std::int64_t step)>;

  DeviceStepRunner(const DeviceStepParts& parts, const StepRunnerConfig& config, LookAt look_at,
                   GraphParts graph = {});

  // stop_requested is asked when numbers have come.
  StepOutcome run(std::int64_t step, const std::function<bool()>& stop_requested) override;
  std::optional<GraphUse> graph_use() const override;

 private:
  void run_graphed(std::int64_t step);
  void queue_prepared(std::int64_t step);
  void begin_outcome(std::int64_t step);
  void queue_gradients(std::int64_t step);
  void compute_micro_step(std::int64_t step, int micro_step, const DeviceBatch& batch);
  void queue_update(std::int64_t step);
  bool is_update_taken(std::int64_t step, bool stop_requested);
  void keep_pace();
  void ask(std::int64_t step);
  void look(std::int64_t step, const std::function<bool()>& stop_requested);
  StepNumbers& read_oldest(bool stop_requested);
  std::int64_t bad_step_of(const optim::StepScalars& scalars) const;  // 0: none
  void judge(const LateStep& late, int first_bad_rank, StepNumbers& numbers) const;
  void tell_loss_scale(const optim::StepScalars& scalars, StepNumbers& numbers);
  bool is_left_out(const optim::StepScalars& scalars) const;
  void wait_for(const comm::cuda::OwnedEvent& event) const;

  DeviceStepParts parts_;
  StepRunnerConfig config_;
  LookAt look_at_;
  LateSteps late_;
  torch::Tensor loss_sum_;                    // one double on the device
  std::vector<comm::cuda::OwnedEvent> ends_;  // of the last kStepsAhead steps
  std::int64_t steps_queued_ = 0;
  // Updates of earlier steps that were not taken. Of all steps on their way to the host: where one
  // may be left out, each is read before the next.
  std::int64_t skipped_before_ = 0;
  LossScaleNews loss_scale_news_;
  StepOutcome outcome_;
  std::unique_ptr<GraphedStep> graphed_;  // null: every step is queued
};

}  // namespace sidestream::launch
