#include "launch/process/watchdog.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <utility>

#include "comm/deadline.hpp"

namespace sidestream::launch {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};

// The flag that gives a phase more time.
const char* flag_of(const Heartbeat::Beat& beat) {
  if (beat.step == 0) return "--timeout-setup";
  if (beat.phase == ranges::Phase::kCheckpoint) return "--timeout-checkpoint";
  if (beat.phase == ranges::Phase::kEval) return "--timeout-eval";
  return "--timeout-step";
}

std::string timeout_text(const Heartbeat::Beat& beat, std::chrono::milliseconds limit) {
  const std::string where = beat.step == 0 ? "the set-up" : fmt::format("step {}", beat.step);
  return fmt::format(
      "{}, {}: not finished after {} ms, and no collective is in flight: this rank itself hangs. "
      "{} gives a slow one more time",
      where, ranges::name_of(beat.phase), limit.count(), flag_of(beat));
}

}  // namespace

std::chrono::milliseconds WatchdogLimits::of(const Heartbeat::Beat& beat) const noexcept {
  if (beat.step == 0) return setup;
  if (beat.phase == ranges::Phase::kCheckpoint) return checkpoint;
  if (beat.phase == ranges::Phase::kEval) return evaluation;
  return step;
}

Watchdog::Watchdog(const Heartbeat& heartbeat, const comm::Communicator& communicator,
                   const WatchdogLimits& limits, OnTimeout on_timeout)
    : heartbeat_(heartbeat),
      communicator_(communicator),
      limits_(limits),
      on_timeout_(std::move(on_timeout)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Watchdog::run(const std::stop_token& stop) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  pthread_setname_np(pthread_self(), "ss-watchdog");
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
      deadline = comm::Deadline(limits_.of(beat));
      continue;
    }
    deadline.tick();
    if (!deadline.is_over()) continue;
    on_timeout_(timeout_text(beat, deadline.limit()));
    return;
  }
}

}  // namespace sidestream::launch
