#include "launch/device/device_step_runner.hpp"

#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "launch/trainer/planted_faults.hpp"
#include "launch/trainer/step_agreement.hpp"
#include "parallel/parameter_list.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;
using ranges::Phase;
using ranges::ScopedRange;

constexpr std::chrono::microseconds kBetweenLooksAtEvent{50};

}  // namespace

DeviceStepRunner::DeviceStepRunner(const DeviceStepParts& parts, const StepRunnerConfig& config,
                                   LookAt look_at, GraphParts graph)
    : parts_(parts),
      config_(config),
      look_at_(std::move(look_at)),
      late_(parts_.driver, parts_.current_stream),
      loss_sum_(torch::zeros(
          {1}, torch::dtype(torch::kFloat64).device(parallel::device_of(parts_.model)))),
      loss_scale_news_(parts_.replicas.loss_scale_state()) {
  for (std::size_t i = 0; i < kStepsAhead; ++i) ends_.emplace_back(parts_.driver);
  if (graph.engine) graphed_ = std::make_unique<GraphedStep>(parts_, config_, std::move(graph));
}

std::optional<GraphUse> DeviceStepRunner::graph_use() const {
  if (!graphed_) return std::nullopt;
  return graphed_->use();
}

void DeviceStepRunner::run_graphed(std::int64_t step) {
  graphed_->run(step, outcome_.lr, [this, step] { queue_prepared(step); });
  outcome_.epoch = graphed_->epoch();
  outcome_.news = graphed_->take_news();
}

void DeviceStepRunner::queue_prepared(std::int64_t step) {
  loss_sum_.zero_();
  for (int micro_step = 0; micro_step < config_.grad_accumulation; ++micro_step)
    compute_micro_step(step, micro_step, graphed_->begin_micro_step(micro_step));
  parts_.replicas.finish_backward();
  parts_.replicas.update_prepared();
}

void DeviceStepRunner::queue_gradients(std::int64_t step) {
  loss_sum_.zero_();
  for (int micro_step = 0; micro_step < config_.grad_accumulation; ++micro_step) {
    config_.heartbeat->beat(Phase::kData, step);
    plant_before_batch(*config_.faults, step, parts_.model, parts_.replicas);
    const DeviceBatch batch = parts_.feed.next();
    outcome_.epoch = batch.epoch;
    if (parts_.drops_out())
      torch::manual_seed(seed_of(config_, parts_.communicator, step, micro_step));
    compute_micro_step(step, micro_step, batch);
    parts_.feed.consumed();
  }
  parts_.replicas.finish_backward();
}

void DeviceStepRunner::compute_micro_step(std::int64_t step, int micro_step,
                                          const DeviceBatch& batch) {
  parts_.replicas.begin_micro_step(micro_step);
  torch::Tensor loss;
  {
    const ScopedRange range(Phase::kForward);
    config_.heartbeat->beat(Phase::kForward, step);
    config_.faults->pass(faults::Point::kForward, step);
    loss =
        plant_in_loss(*config_.faults, step, parts_.model.loss(batch.inputs_bt, batch.targets_bt));
  }
  {
    const ScopedRange range(Phase::kBackward);
    config_.heartbeat->beat(Phase::kBackward, step);
    loss.backward(parts_.replicas.loss_scale());
  }
  const torch::NoGradGuard no_grad;
  loss_sum_.add_(loss.detach());
}

StepOutcome DeviceStepRunner::run(std::int64_t step, const std::function<bool()>& stop_requested) {
  const auto start = Clock::now();
  const std::uint64_t reader_before = parts_.feed.reader_cost_ns();
  {
    const ranges::StepRange step_range(step);
    parts_.model.train();
    begin_outcome(step);
    if (graphed_) {
      run_graphed(step);
    } else {
      queue_gradients(step);
      const bool judged_first = config_.judge->drops_updates();
      if (!judged_first || is_update_taken(step, stop_requested()))
        queue_update(step);
      else
        parts_.replicas.drop_gradients();
    }
  }
  keep_pace();
  if (!config_.judge->drops_updates()) look(step, stop_requested);
  outcome_.reader_ns = static_cast<std::int64_t>(parts_.feed.reader_cost_ns() - reader_before);
  outcome_.step_ns = std::chrono::nanoseconds(Clock::now() - start).count();
  return outcome_;
}

void DeviceStepRunner::begin_outcome(std::int64_t step) {
  skipped_before_ = step - 1 - parts_.replicas.steps_taken();
  outcome_ = {.lr = optim::learning_rate(config_.schedule, step)};
  loss_scale_news_.begin(step);
}

void DeviceStepRunner::queue_update(std::int64_t step) {
  config_.heartbeat->beat(Phase::kOptimizer, step);
  config_.faults->pass(faults::Point::kUpdate, step);
  parts_.replicas.update(outcome_.lr);
}

// An update that may be left out is not queued before its step is judged: the host waits for the
// device in every step.
bool DeviceStepRunner::is_update_taken(std::int64_t step, bool stop_requested) {
  parts_.replicas.grad_norm();
  ask(step);
  StepNumbers& numbers = read_oldest(stop_requested);
  if (numbers.anomaly && !numbers.updated && !numbers.anomaly->is_spike())
    numbers.anomaly->parameter = parts_.replicas.first_bad_gradient();
  return numbers.updated;
}

// Marks the end of this step, and waits for that of an earlier one: the time between two returns is
// then the time of a step on the device, and memory that the host has queued for does not pile up.
void DeviceStepRunner::keep_pace() {
  comm::cuda::OwnedEvent& oldest = ends_[static_cast<std::size_t>(steps_queued_) % kStepsAhead];
  if (steps_queued_ >= static_cast<std::int64_t>(kStepsAhead)) wait_for(oldest);
  oldest.record(parts_.current_stream());
  ++steps_queued_;
}

// A failed collective aborts what is on the device, so that this comes to an end.
void DeviceStepRunner::wait_for(const comm::cuda::OwnedEvent& event) const {
  while (!event.done()) std::this_thread::sleep_for(kBetweenLooksAtEvent);
}

void DeviceStepRunner::ask(std::int64_t step) {
  late_.ask(step, loss_sum_, parts_.replicas.device_scalars());
}

// The step before is read here, behind which this one is queued already. Where the ranks agree to
// stop there is no step after this one to read it in.
void DeviceStepRunner::look(std::int64_t step, const std::function<bool()>& stop_requested) {
  const Look wish = look_at_(step);
  const bool is_before_asked = late_.is_asked();
  const bool is_asked = wish != Look::kNone || step % kLongestSilence == 0;
  if (is_asked) ask(step);
  if (is_before_asked) read_oldest(stop_requested());
  if (wish != Look::kAtOnce && !outcome_.stop_requested) return;
  if (!is_asked) ask(step);
  read_oldest(stop_requested());
}

// Waits for the device, and then for the other ranks.
StepNumbers& DeviceStepRunner::read_oldest(bool stop_requested) {
  const LateStep late = late_.read();
  const StepVerdict verdict =
      agree_on_step(parts_.communicator, {.loss = late.loss_sum / config_.grad_accumulation,
                                          .grad_norm = late.scalars.grad_norm,
                                          .stop_requested = stop_requested,
                                          .save_stage_done = config_.save_stage_done()});
  outcome_.stop_requested = outcome_.stop_requested || verdict.stop;
  outcome_.save_stage_done = verdict.save_stage_done;
  StepNumbers& numbers = outcome_.numbers.emplace_back(
      StepNumbers{.step = late.step, .loss = verdict.mean_loss, .grad_norm = verdict.grad_norm});
  tell_loss_scale(late.scalars, numbers);
  judge(late, verdict.first_bad_rank, numbers);
  return numbers;
}

// The device counts updates: fewer than steps, where an earlier part of the run has left some out.
std::int64_t DeviceStepRunner::bad_step_of(const optim::StepScalars& scalars) const {
  const auto bad_update = static_cast<std::int64_t>(scalars.first_bad_step);
  return bad_update == 0 ? 0 : bad_update + skipped_before_;
}

// A norm that is not finite is that of the summed gradients: the same on all ranks, and from its
// step on the device has changed nothing.
void DeviceStepRunner::judge(const LateStep& late, int first_bad_rank, StepNumbers& numbers) const {
  const std::int64_t bad_step = bad_step_of(late.scalars);
  if (bad_step == 0 && is_left_out(late.scalars)) return;
  const bool is_dynamic = config_.loss_scale.kind == optim::LossScaling::kDynamic;
  const bool is_finite = bad_step == 0 && std::isfinite(late.scalars.grad_norm);
  const double least_scale = is_dynamic && !is_finite ? late.scalars.loss_scale.scale : 0;
  // Of a bad step between two looks the norm is all that is known.
  const bool is_this_one = bad_step == 0 || bad_step == late.step;
  const auto judgement = config_.judge->judge({.step = bad_step == 0 ? late.step : bad_step,
                                               .loss = is_this_one ? numbers.loss : NAN,
                                               .grad_norm = bad_step == 0 ? numbers.grad_norm : NAN,
                                               .bad_rank = is_this_one ? first_bad_rank : -1,
                                               .least_loss_scale = least_scale});
  numbers.anomaly = judgement.anomaly;
  numbers.updated = judgement.update;
}

// The affair of the loss scale, and no anomaly. Where the update is queued only after this look,
// the state is that of before it.
bool DeviceStepRunner::is_left_out(const optim::StepScalars& scalars) const {
  const bool is_dynamic = config_.loss_scale.kind == optim::LossScaling::kDynamic;
  if (!is_dynamic || std::isfinite(scalars.grad_norm)) return false;
  return !config_.judge->drops_updates() ||
         optim::verdict_on(config_.loss_scale, scalars.loss_scale, /*finite=*/false) ==
             optim::UpdateVerdict::kLeaveOut;
}

void DeviceStepRunner::tell_loss_scale(const optim::StepScalars& scalars, StepNumbers& numbers) {
  if (config_.loss_scale.kind == optim::LossScaling::kOff) return;
  numbers.loss_scale = scalars.loss_scale;
  // Where a step is looked at before its update, the state is what the step before has left.
  const std::int64_t last_update = numbers.step - (config_.judge->drops_updates() ? 1 : 0);
  numbers.news = loss_scale_news_.of(last_update, scalars.loss_scale);
}

}  // namespace sidestream::launch
