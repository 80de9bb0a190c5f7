#include "launch/device/device_step_runner.hpp"

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "launch/trainer/dropout_seed.hpp"
#include "launch/trainer/planted_faults.hpp"
#include "launch/trainer/step_agreement.hpp"
#include "parallel/parameter_list.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;
using ranges::Phase;
using ranges::ScopedRange;

constexpr std::chrono::microseconds kBetweenLooks{50};

// Where the numbers lie on their way to the host.
constexpr std::size_t kLossAt = 0;
constexpr std::size_t kScalarsAt = 1;  // as optim::StepScalars

optim::StepScalars scalars_in(const std::array<double, LateValues::kMost>& values) {
  static_assert(kScalarsAt + optim::kStepScalars <= LateValues::kMost);
  optim::StepScalars scalars;
  std::memcpy(static_cast<void*>(&scalars), values.data() + kScalarsAt, sizeof scalars);
  return scalars;
}

}  // namespace

DeviceStepRunner::DeviceStepRunner(const DeviceStepParts& parts, const StepRunnerConfig& config,
                                   std::function<bool(std::int64_t)> is_due, GraphParts graph)
    : parts_(parts),
      config_(config),
      is_due_(std::move(is_due)),
      late_(parts_.driver, parts_.current_stream),
      loss_sum_(torch::zeros(
          {1}, torch::dtype(torch::kFloat64).device(parallel::device_of(parts_.model)))),
      loss_scale_news_(parts_.replicas.loss_scale_state()) {
  for (std::size_t i = 0; i < kStepsAhead; ++i) ends_.emplace_back(parts_.driver);
  if (graph.engine) graphed_ = make_graphed(std::move(graph));
}

std::uint64_t DeviceStepRunner::seed_of(std::int64_t step, int micro_step) const {
  return dropout_seed(config_.seed, {.step = step,
                                     .micro_step = micro_step,
                                     .grad_accumulation = config_.grad_accumulation,
                                     .rank = parts_.communicator.rank(),
                                     .ranks = parts_.communicator.size()});
}

void DeviceStepRunner::queue_gradients(std::int64_t step) {
  loss_sum_.zero_();
  for (int micro_step = 0; micro_step < config_.grad_accumulation; ++micro_step) {
    config_.heartbeat->beat(Phase::kData, step);
    plant_before_batch(*config_.faults, step, parts_.model, parts_.replicas);
    const DeviceBatch batch = parts_.feed.next();
    outcome_.epoch = batch.epoch;
    if (drops_out()) torch::manual_seed(seed_of(step, micro_step));
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
      if (config_.judge->drops_updates()) look_before_update(step, stop_requested());
      if (outcome_.updated) queue_update(step);
    }
  }
  keep_pace();
  const bool due = is_due_(step) || step % kLongestSilence == 0;
  if (due && !config_.judge->drops_updates()) look(step, stop_requested());
  outcome_.reader_ns = static_cast<std::int64_t>(parts_.feed.reader_cost_ns() - reader_before);
  outcome_.step_ns = std::chrono::nanoseconds(Clock::now() - start).count();
  return outcome_;
}

void DeviceStepRunner::begin_outcome(std::int64_t step) {
  outcome_.stop_requested = false;
  outcome_.save_stage_done = false;
  outcome_.anomaly.reset();
  outcome_.updated = true;
  outcome_.news.clear();
  outcome_.lr = optim::learning_rate(config_.schedule, step);
}

void DeviceStepRunner::queue_update(std::int64_t step) {
  config_.heartbeat->beat(Phase::kOptimizer, step);
  config_.faults->pass(faults::Point::kUpdate, step);
  const double norm = parts_.replicas.update(outcome_.lr).grad_norm;
  if (!config_.judge->drops_updates()) outcome_.grad_norm = norm;
}

// An update that may be left out is not queued before its step is judged: the host waits for the
// device in every step.
void DeviceStepRunner::look_before_update(std::int64_t step, bool stop_requested) {
  parts_.replicas.grad_norm();
  look(step, stop_requested);
  if (outcome_.anomaly && !outcome_.updated && !outcome_.anomaly->is_spike())
    outcome_.anomaly->parameter = parts_.replicas.first_bad_gradient();
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
  while (!event.done()) std::this_thread::sleep_for(kBetweenLooks);
}

void DeviceStepRunner::look(std::int64_t step, bool stop_requested) {
  late_.ask(kLossAt, loss_sum_);
  late_.ask(kScalarsAt, parts_.replicas.device_scalars());
  late_.seal();
  const auto& values = late_.read([] {});
  const optim::StepScalars scalars = scalars_in(values);
  const auto verdict =
      agree_on_step(parts_.communicator, {.loss = values[kLossAt] / config_.grad_accumulation,
                                          .grad_norm = scalars.grad_norm,
                                          .stop_requested = stop_requested,
                                          .save_stage_done = config_.save_stage_done()});
  outcome_.loss = verdict.mean_loss;
  outcome_.grad_norm = verdict.grad_norm;
  outcome_.stop_requested = verdict.stop;
  outcome_.save_stage_done = verdict.save_stage_done;
  // Of the summed gradients: the same on all ranks. From that step on the device has changed
  // nothing.
  const auto bad_step = static_cast<std::int64_t>(scalars.first_bad_step);
  tell_loss_scale(step, scalars);
  if (bad_step == 0 && is_left_out(scalars)) return;
  const bool is_dynamic = config_.loss_scale.kind == optim::LossScaling::kDynamic;
  const bool is_finite = bad_step == 0 && std::isfinite(scalars.grad_norm);
  const double least_scale = is_dynamic && !is_finite ? scalars.loss_scale.scale : 0;
  judge(bad_step != 0
            ? StepValues{.step = bad_step, .grad_norm = NAN, .least_loss_scale = least_scale}
            : StepValues{.step = step,
                         .loss = verdict.mean_loss,
                         .grad_norm = verdict.grad_norm,
                         .bad_rank = verdict.first_bad_rank,
                         .least_loss_scale = least_scale});
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

void DeviceStepRunner::tell_loss_scale(std::int64_t step, const optim::StepScalars& scalars) {
  if (config_.loss_scale.kind == optim::LossScaling::kOff) return;
  outcome_.loss_scale = scalars.loss_scale;
  const std::string news = loss_scale_news_.of(step, scalars.loss_scale);
  if (!outcome_.news.empty() && !news.empty()) outcome_.news += "\n";
  outcome_.news += news;
}

void DeviceStepRunner::judge(const StepValues& values) {
  const auto judgement = config_.judge->judge(values);
  outcome_.anomaly = judgement.anomaly;
  outcome_.updated = judgement.update;
}

}  // namespace sidestream::launch
