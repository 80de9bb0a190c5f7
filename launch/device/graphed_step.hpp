// A step that is one piece of work, all micro-steps in it, for a device that is never left between
// two of them: batches, seeds and the rule of the update are brought to the device first, then the
// work is queued, captured or replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launch/device/device_step_parts.hpp"
#include "launch/device/static_batches.hpp"
#include "launch/device/step_graph.hpp"

namespace sidestream::launch {

class GraphedStep {
 public:
  // The engine is there. Throws Error where a step waits for the host.
  GraphedStep(const DeviceStepParts& parts, const StepRunnerConfig& config, GraphParts graph);

  // `work` queues the step, as StepGraph::run says, with the batches of begin_micro_step().
  void run(std::int64_t step, double learning_rate, const std::function<void()>& work);

  // In `work`: the batch of a micro-step, whose draws come next.
  const DeviceBatch& begin_micro_step(int micro_step);

  std::uint64_t epoch() const { return batches_.epoch(); }
  std::string take_news() { return graph_.take_news(); }
  const GraphUse& use() const noexcept { return graph_.use(); }

 private:
  void bring_to_device(std::int64_t step, double learning_rate);

  DeviceStepParts parts_;
  StepRunnerConfig config_;
  GraphParts graph_parts_;
  StaticBatches batches_;
  std::int64_t steps_before_ = 0;  // taken before the step that is under way
  StepGraph graph_;
};

}  // namespace sidestream::launch
