#include "launch/device/graphed_step.hpp"

#include <chrono>
#include <utility>

#include "core/base/error.hpp"
#include "launch/trainer/planted_faults.hpp"

namespace sidestream::launch {
namespace {

using ranges::Phase;

// A rank whose capture has failed does not wait long for peers that NCCL may hold up because of it.
constexpr std::chrono::seconds kPatienceAfterFailure{10};

// The first rank that has a problem, and what it is.
std::string first_problem(comm::Communicator& communicator, const std::string& mine) {
  comm::CollectiveOptions options{.purpose = "graph captures"};
  if (!mine.empty()) options.deadline = kPatienceAfterFailure;
  for (const std::string& problem : communicator.exchange(mine, options)) {
    if (!problem.empty()) return problem;
  }
  return {};
}

comm::CollectiveCapture& captured_collectives(const DeviceStepParts& parts,
                                              const StepRunnerConfig& config) {
  comm::CollectiveCapture* const collectives = parts.communicator.collective_capture();
  if (collectives == nullptr || config.judge->drops_updates())
    throw core::Error("a step was to be captured that waits for the host");
  return *collectives;
}

}  // namespace

GraphedStep::GraphedStep(const DeviceStepParts& parts, const StepRunnerConfig& config,
                         GraphParts graph)
    : parts_(parts),
      config_(config),
      graph_parts_(std::move(graph)),
      batches_(parts_.feed, config_.grad_accumulation),
      graph_(
          *graph_parts_.engine, captured_collectives(parts_, config_),
          {.agree =
               [this](const std::string& mine) { return first_problem(parts_.communicator, mine); },
           .current_stream = parts_.current_stream,
           .restore = [this] { parts_.replicas.abandon_step(steps_before_); }}) {}

void GraphedStep::run(std::int64_t step, double learning_rate, const std::function<void()>& work) {
  bring_to_device(step, learning_rate);
  steps_before_ = parts_.replicas.steps_taken();
  const std::string eager_because =
      graph_parts_.eager_because ? graph_parts_.eager_because(step) : std::string();
  const StepWay way =
      graph_.run({.layout = parts_.replicas.layout(), .eager_because = eager_because}, work);
  if (way == StepWay::kReplayed) parts_.replicas.count_replayed_step();
}

// Everything that differs from step to step, and what a step does on the host.
void GraphedStep::bring_to_device(std::int64_t step, double learning_rate) {
  config_.heartbeat->beat(Phase::kData, step);
  plant_before_batch(*config_.faults, step, parts_.model, parts_.replicas);
  batches_.take();
  for (int i = 0; parts_.drops_out() && i < config_.grad_accumulation; ++i)
    graph_parts_.engine->set_seed(i, seed_of(config_, parts_.communicator, step, i));
  parts_.replicas.prepare_update(learning_rate);
  config_.heartbeat->beat(Phase::kReplay, step);
  config_.faults->pass(faults::Point::kForward, step);
  config_.faults->pass(faults::Point::kUpdate, step);
}

const DeviceBatch& GraphedStep::begin_micro_step(int micro_step) {
  if (parts_.drops_out()) graph_parts_.engine->draw_for(micro_step);
  return batches_.at(micro_step);
}

}  // namespace sidestream::launch
