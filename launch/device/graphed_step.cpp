// The steps of a DeviceStepRunner that are captured and replayed.
#include <utility>

#include "core/base/error.hpp"
#include "launch/device/device_step_runner.hpp"
#include "launch/trainer/planted_faults.hpp"

namespace sidestream::launch {
namespace {

using ranges::Phase;

// The first rank that has a problem, and what it is.
std::string first_problem(comm::Communicator& communicator, const std::string& mine) {
  for (const std::string& problem : communicator.exchange(mine, {.purpose = "graph captures"})) {
    if (!problem.empty()) return problem;
  }
  return {};
}

}  // namespace

std::unique_ptr<DeviceStepRunner::Graphed> DeviceStepRunner::make_graphed(GraphParts graph) {
  comm::CollectiveCapture* const collectives = parts_.communicator.collective_capture();
  if (collectives == nullptr || config_.judge->drops_updates())
    throw core::Error("a step was to be captured that waits for the host");
  GraphEngine& engine = *graph.engine;
  return std::unique_ptr<Graphed>(new Graphed{
      .parts = std::move(graph),
      .batches = StaticBatches(parts_.feed, config_.grad_accumulation),
      .graph = StepGraph(
          engine, *collectives,
          {.agree =
               [this](const std::string& mine) { return first_problem(parts_.communicator, mine); },
           .current_stream = parts_.current_stream,
           .restore = [this] { parts_.replicas.abandon_step(steps_before_); }})});
}

std::optional<GraphUse> DeviceStepRunner::graph_use() const {
  if (!graphed_) return std::nullopt;
  return graphed_->graph.use();
}

void DeviceStepRunner::run_graphed(std::int64_t step) {
  bring_to_device(step);
  steps_before_ = parts_.replicas.steps_taken();
  const std::string eager_because =
      graphed_->parts.eager_because ? graphed_->parts.eager_because(step) : std::string();
  const StepWay way =
      graphed_->graph.run({.layout = parts_.replicas.layout(), .eager_because = eager_because},
                          [this, step] { queue_prepared(step); });
  if (way == StepWay::kReplayed) parts_.replicas.count_replayed_step();
  outcome_.news = graphed_->graph.take_news();
}

// Everything that differs from step to step, and what a step does on the host.
void DeviceStepRunner::bring_to_device(std::int64_t step) {
  config_.heartbeat->beat(Phase::kData, step);
  plant_before_batch(*config_.faults, step, parts_.model, parts_.replicas);
  graphed_->batches.take();
  outcome_.epoch = graphed_->batches.epoch();
  for (int i = 0; drops_out() && i < config_.grad_accumulation; ++i)
    graphed_->parts.engine->set_seed(i, seed_of(step, i));
  parts_.replicas.prepare_update(outcome_.lr);
  config_.heartbeat->beat(Phase::kReplay, step);
  config_.faults->pass(faults::Point::kForward, step);
  config_.faults->pass(faults::Point::kUpdate, step);
}

void DeviceStepRunner::queue_prepared(std::int64_t step) {
  loss_sum_.zero_();
  for (int micro_step = 0; micro_step < config_.grad_accumulation; ++micro_step) {
    if (drops_out()) graphed_->parts.engine->draw_for(micro_step);
    compute_micro_step(step, micro_step, graphed_->batches.at(micro_step));
  }
  parts_.replicas.finish_backward();
  parts_.replicas.update_prepared();
}

}  // namespace sidestream::launch
