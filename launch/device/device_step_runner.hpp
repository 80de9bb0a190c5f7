// One optimizer step on a GPU. It queues work and returns; nothing inside a step waits for the
// device, unless the policies of the run may leave an update out.
//
// With a graph the whole step is one piece of work, all micro-steps with it, for a device that is
// never left between two of them: batches, seeds and the rule of the update are brought to the
// device first, then the work is queued, captured or replayed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.hpp"
#include "launch/device/device_feed.hpp"
#include "launch/device/late_values.hpp"
#include "launch/device/static_batches.hpp"
#include "launch/device/step_graph.hpp"
#include "launch/trainer/step_runner.hpp"
#include "launch/trainer/stepper.hpp"
#include "model/language_model.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

struct DeviceStepParts {
  model::LanguageModel& model;
  parallel::DataParallel& replicas;
  DeviceFeed& feed;
  comm::Communicator& communicator;
  std::shared_ptr<comm::cuda::Driver> driver;
  parallel::CurrentStream current_stream;
};

// For steps that are captured and replayed.
struct GraphParts {
  std::unique_ptr<GraphEngine> engine = {};  // null: every step is queued
  // Why a step is not to be replayed; an empty text: it may be.
  std::function<std::string(std::int64_t step)> eager_because = {};
};

class DeviceStepRunner final : public Stepper {
 public:
  // Steps that the host may have queued beside the one that runs.
  static constexpr std::size_t kStepsAhead = 2;
  // Steps after which the ranks look at the latest.
  static constexpr std::int64_t kLongestSilence = 10;

  // is_due(step): somebody wants to see the numbers of this step.
  DeviceStepRunner(const DeviceStepParts& parts, const StepRunnerConfig& config,
                   std::function<bool(std::int64_t step)> is_due, GraphParts graph = {});

  // Numbers are of the last step that was looked at; stop_requested is asked then.
  StepOutcome run(std::int64_t step, const std::function<bool()>& stop_requested) override;
  std::optional<GraphUse> graph_use() const override;

 private:
  // What a run with a graph has.
  struct Graphed {
    GraphParts parts;
    StaticBatches batches;
    StepGraph graph;
  };
  std::unique_ptr<Graphed> make_graphed(GraphParts graph);
  void run_graphed(std::int64_t step);
  void bring_to_device(std::int64_t step);
  void queue_prepared(std::int64_t step);
  void begin_outcome(std::int64_t step);
  void queue_gradients(std::int64_t step);
  void compute_micro_step(std::int64_t step, int micro_step, const DeviceBatch& batch);
  std::uint64_t seed_of(std::int64_t step, int micro_step) const;
  bool drops_out() const { return parts_.model.config().dropout > 0; }
  void queue_update(std::int64_t step);
  void look_before_update(std::int64_t step, bool stop_requested);
  void keep_pace();
  void look(std::int64_t step, bool stop_requested);
  void judge(const StepValues& values);
  void tell_loss_scale(std::int64_t step, const optim::StepScalars& scalars);
  bool is_left_out(const optim::StepScalars& scalars) const;
  void wait_for(const comm::cuda::OwnedEvent& event) const;

  DeviceStepParts parts_;
  StepRunnerConfig config_;
  std::function<bool(std::int64_t)> is_due_;
  LateValues late_;
  torch::Tensor loss_sum_;                    // one double on the device
  std::vector<comm::cuda::OwnedEvent> ends_;  // of the last kStepsAhead steps
  std::int64_t steps_queued_ = 0;
  std::int64_t steps_before_ = 0;  // taken before the step with a graph that is under way
  LossScaleNews loss_scale_news_;
  StepOutcome outcome_;
  std::unique_ptr<Graphed> graphed_;  // null: every step is queued
};

}  // namespace sidestream::launch
