#include "launch/trainer/step_runner.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "core/base/exit_code.hpp"
#include "launch/process/agreement.hpp"
#include "launch/trainer/dropout_seed.hpp"
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
  torch::manual_seed(dropout_seed(config_.seed, {.step = step,
                                                 .micro_step = micro_step,
                                                 .grad_accumulation = config_.grad_accumulation,
                                                 .rank = communicator_.rank(),
                                                 .ranks = communicator_.size()}));
}

double StepRunner::run_micro_step(std::int64_t step, int micro_step, StepOutcome& outcome) {
  const data::Batch batch = [&] {
    const ScopedRange range(Phase::kData);
    return loader_.next();
  }();
  outcome.reader_ns += static_cast<std::int64_t>(loader_.last_reader_cost_ns());
  outcome.epoch = batch.epoch();
  seed_dropout(step, micro_step);
  replicas_.begin_micro_step(micro_step);
  torch::Tensor loss;
  {
    const ScopedRange range(Phase::kForward);
    loss = model_.loss(as_tensor(batch.inputs(), config_.sequence_length),
                       as_tensor(batch.targets(), config_.sequence_length));
  }
  const ScopedRange range(Phase::kBackward);
  loss.backward();
  return loss.item<double>();
}

StepOutcome StepRunner::run(std::int64_t step, const std::function<bool()>& stop_requested) {
  const auto start = Clock::now();
  const ranges::StepRange step_range(step);
  model_.train();
  StepOutcome outcome;
  outcome.lr = optim::learning_rate(config_.schedule, step);
  double loss_sum = 0;
  for (int micro_step = 0; micro_step < config_.grad_accumulation; ++micro_step) {
    loss_sum += run_micro_step(step, micro_step, outcome);
  }
  replicas_.finish_backward();
  const auto verdict = agree_on_step(communicator_, {.loss = loss_sum / config_.grad_accumulation,
                                                     .stop_requested = stop_requested()});
  if (verdict.first_bad_rank >= 0) {
    throw AgreedError(
        fmt::format(
            "step {}: the loss of rank {} is not finite. Weights were not changed. A lower --lr, "
            "more --warmup-steps or a smaller --grad-clip usually help.",
            step, verdict.first_bad_rank),
        core::ExitCode::kNumerics);
  }
  if (!std::isfinite(replicas_.grad_norm())) {  // the same on all ranks: of the summed gradients
    throw AgreedError(fmt::format("step {}: the gradient norm is not finite. Weights were not "
                                  "changed. A lower --lr, more "
                                  "--warmup-steps or a smaller --grad-clip usually help.",
                                  step),
                      core::ExitCode::kNumerics);
  }
  const parallel::StepStatistics statistics = replicas_.update(outcome.lr);
  outcome.loss = verdict.mean_loss;
  outcome.stop_requested = verdict.stop;
  outcome.grad_norm = statistics.grad_norm;
  outcome.exposed_comm_ns = statistics.exposed_comm_ns;
  outcome.step_ns = ns_since(start);
  return outcome;
}

}  // namespace sidestream::launch
