#include "launch/trainer/step_runner.hpp"

#include <chrono>
#include <cmath>

#include "launch/trainer/dropout_seed.hpp"
#include "launch/trainer/planted_faults.hpp"
#include "launch/trainer/step_agreement.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;
using ranges::Phase;
using ranges::ScopedRange;

std::int64_t ns_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

// [B, T] over the loader's memory.
torch::Tensor as_tensor(std::span<const std::int64_t> tokens, std::int64_t sequence_length) {
  auto* data =
      const_cast<std::int64_t*>(tokens.data());  // from_blob has no const form; nobody writes
  const auto rows = static_cast<std::int64_t>(tokens.size()) / sequence_length;
  return torch::from_blob(data, {rows, sequence_length}, torch::kInt64);
}

}  // namespace

void StepRunner::seed_dropout(std::int64_t step, int micro_step) const {
  if (model_.config().dropout == 0) return;
  torch::manual_seed(dropout_seed(
      config_.seed, {.step = step, .micro_step = micro_step, .rank = communicator_.rank()}));
}

double StepRunner::run_micro_step(std::int64_t step, int micro_step, StepOutcome& outcome) {
  const data::Batch batch = [&] {
    const ScopedRange range(Phase::kData);
    config_.heartbeat->beat(Phase::kData, step);
    plant_before_batch(*config_.faults, step, model_, replicas_);
    return loader_.next();
  }();
  outcome.reader_ns += static_cast<std::int64_t>(loader_.last_reader_cost_ns());
  outcome.epoch = batch.epoch();
  seed_dropout(step, micro_step);
  replicas_.begin_micro_step(micro_step);
  torch::Tensor loss;
  {
    const ScopedRange range(Phase::kForward);
    config_.heartbeat->beat(Phase::kForward, step);
    config_.faults->pass(faults::Point::kForward, step);
    loss = model_.loss(as_tensor(batch.inputs(), config_.sequence_length),
                       as_tensor(batch.targets(), config_.sequence_length));
    loss = plant_in_loss(*config_.faults, step, std::move(loss));
  }
  const ScopedRange range(Phase::kBackward);
  config_.heartbeat->beat(Phase::kBackward, step);
  loss.backward(replicas_.loss_scale());
  return loss.item<double>();
}

StepOutcome StepRunner::run(std::int64_t step, const std::function<bool()>& stop_requested) {
  const auto start = Clock::now();
  const ranges::StepRange step_range(step);
  model_.train();
  StepOutcome outcome;
  outcome.lr = optim::learning_rate(config_.schedule, step);
  loss_scale_news_.begin(step);
  double loss_sum = 0;
  for (int micro_step = 0; micro_step < config_.grad_accumulation; ++micro_step) {
    loss_sum += run_micro_step(step, micro_step, outcome);
  }
  replicas_.finish_backward();
  const StepVerdict verdict =
      agree_on_step(communicator_, {.loss = loss_sum / config_.grad_accumulation,
                                    .grad_norm = replicas_.grad_norm(),
                                    .stop_requested = stop_requested(),
                                    .save_stage_done = config_.save_stage_done(),
                                    .exposed_comm_ns = exposed_comm_ns_});
  outcome.stop_requested = verdict.stop;
  outcome.save_stage_done = verdict.save_stage_done;
  outcome.exposed_comm_ns = verdict.exposed_comm_ns;
  StepNumbers& numbers = outcome.numbers.emplace_back(
      StepNumbers{.step = step, .loss = verdict.mean_loss, .grad_norm = verdict.grad_norm});
  update(outcome.lr, verdict, numbers);
  outcome.news = replicas_.take_news();
  tell_loss_scale(numbers);
  outcome.step_ns = ns_since(start);
  return outcome;
}

// What is not finite because of the loss scale is the scale's affair: nobody judges such a step,
// and update() leaves the weights as they are.
void StepRunner::update(double lr, const StepVerdict& verdict, StepNumbers& numbers) {
  const optim::LossScaleState scale = replicas_.loss_scale_state();
  const optim::UpdateVerdict of_scale =
      optim::verdict_on(config_.loss_scale, scale, std::isfinite(verdict.grad_norm));
  if (of_scale == optim::UpdateVerdict::kLeaveOut) return take_update(numbers.step, lr);
  const auto judgement = config_.judge->judge(
      {.step = numbers.step,
       .loss = verdict.mean_loss,
       .grad_norm = verdict.grad_norm,
       .bad_rank = verdict.first_bad_rank,
       .least_loss_scale = of_scale == optim::UpdateVerdict::kGiveUp ? scale.scale : 0});
  numbers.anomaly = judgement.anomaly;
  numbers.updated = judgement.update;
  if (!judgement.update) {
    if (!numbers.anomaly->is_spike()) numbers.anomaly->parameter = replicas_.first_bad_gradient();
    replicas_.drop_gradients();
    return;
  }
  take_update(numbers.step, lr);
}

void StepRunner::take_update(std::int64_t step, double lr) {
  config_.heartbeat->beat(Phase::kOptimizer, step);
  config_.faults->pass(faults::Point::kUpdate, step);
  if (config_.faults->desynchronises(step)) communicator_.barrier();
  exposed_comm_ns_ = replicas_.update(lr).exposed_comm_ns;
}

void StepRunner::tell_loss_scale(StepNumbers& numbers) {
  if (config_.loss_scale.kind == optim::LossScaling::kOff) return;
  numbers.loss_scale = replicas_.loss_scale_state();
  numbers.news = loss_scale_news_.of(numbers.step, *numbers.loss_scale);
}

}  // namespace sidestream::launch
