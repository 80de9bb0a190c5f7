#include "launch/process/watchdog.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "comm/deadline.hpp"
#include "core/base/worker_thread.hpp"

namespace sidestream::launch {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};

// How long a phase may take, and the flag that gives it more time.
struct Allowance {
  std::chrono::milliseconds limit;
  const char* flag;
};

Allowance allowance_of(const Heartbeat::Beat& beat, const Timeouts& limits) {
  if (beat.step == 0) return {limits.setup, "--timeout-setup"};
  if (beat.phase == ranges::Phase::kCheckpoint) return {limits.checkpoint, "--timeout-checkpoint"};
  if (beat.phase == ranges::Phase::kEval) return {limits.evaluation, "--timeout-eval"};
  return {limits.step, "--timeout-step"};
}

std::string timeout_text(const Heartbeat::Beat& beat, const Allowance& allowance) {
  const std::string where = beat.step == 0 ? "the set-up" : fmt::format("step {}", beat.step);
  return fmt::format(
      "{}, {}: not finished after {} ms, and no collective is in flight: this rank itself hangs. "
      "{} gives a slow one more time",
      where, ranges::name_of(beat.phase), allowance.limit.count(), allowance.flag);
}

}  // namespace

Watchdog::Watchdog(const Heartbeat& heartbeat, const comm::Communicator& communicator,
                   const Timeouts& limits, OnTimeout on_timeout)
    : heartbeat_(heartbeat),
      communicator_(communicator),
      limits_(limits),
      on_timeout_(std::move(on_timeout)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Watchdog::run(const std::stop_token& stop) {
  core::become_worker_thread("ss-watchdog");
  std::mutex mutex;
  std::condition_variable_any never;
  Heartbeat::Beat seen;
  comm::Deadline deadline(limits_.step);
  while (!stop.stop_requested()) {
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, kBetweenLooks, [] { return false; });
    const Heartbeat::Beat beat = heartbeat_.last();
    if (beat.count != seen.count || beat.count == 0 || communicator_.is_in_flight()) {
      seen = beat;
      deadline = comm::Deadline(allowance_of(beat, limits_).limit);
      continue;
    }
    deadline.tick();
    if (!deadline.is_over()) continue;
    on_timeout_(timeout_text(beat, allowance_of(beat, limits_)));
    return;
  }
}

}  // namespace sidestream::launch
