#include "launch/watch/watchdog.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/base/worker_thread.hpp"
#include "launch/watch/overdue.hpp"

namespace sidestream::launch {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};

// How long a phase may take, and what gives it more time.
struct Allowance {
  std::chrono::milliseconds limit;
  const char* more_time;
};

Allowance allowance_of(const Heartbeat::Beat& beat, const Timeouts& limits,
                       const Watchdog::MoreTime& more) {
  // Reading a checkpoint takes about as long as writing one, also where that is in the set-up.
  const bool reads = beat.phase == ranges::Phase::kCheckpoint && limits.checkpoint > limits.setup;
  if (beat.step == 0 && !reads) return {limits.setup, more.setup};
  if (beat.phase == ranges::Phase::kCheckpoint) return {limits.checkpoint, more.save};
  if (beat.phase == ranges::Phase::kEval) return {limits.evaluation, more.evaluation};
  return {limits.step, more.step};
}

std::string timeout_text(const Heartbeat::Beat& beat, const Allowance& allowance) {
  const std::string where = beat.step == 0 ? "the set-up" : fmt::format("step {}", beat.step);
  return fmt::format(
      "{}, {}: not finished after {} ms, and no collective is in flight: this rank itself hangs. "
      "{} gives a slow one more time",
      where, ranges::name_of(beat.phase), allowance.limit.count(), allowance.more_time);
}

std::string save_text(const Heartbeat::Save& save, const Allowance& allowance) {
  return fmt::format(
      "the save of step {}, which is written beside training: not finished after {} ms: its thread "
      "hangs, in a file system that does not answer, say. {} gives a slow one more time",
      save.step, allowance.limit.count(), allowance.more_time);
}

}  // namespace

Watchdog::Watchdog(const Heartbeat& heartbeat, const comm::Communicator& communicator,
                   const Timeouts& limits, OnTimeout on_timeout, const MoreTime& more_time)
    : heartbeat_(heartbeat),
      communicator_(communicator),
      limits_(limits),
      on_timeout_(std::move(on_timeout)),
      more_time_(more_time),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Watchdog::run(const std::stop_token& stop) {
  core::become_worker_thread("ss-watchdog");
  std::mutex mutex;
  std::condition_variable_any never;
  Overdue training, saving;
  while (!stop.stop_requested()) {
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, kBetweenLooks, [] { return false; });
    const Heartbeat::Beat beat = heartbeat_.last();
    const Heartbeat::Save save = heartbeat_.save();
    const Allowance allowance = allowance_of(beat, limits_, more_time_);
    if (saving.look(save.count, save.step > 0, limits_.checkpoint))
      return on_timeout_(save_text(save, {limits_.checkpoint, more_time_.save}));
    if (training.look(beat.count, beat.count > 0 && !communicator_.is_in_flight(), allowance.limit))
      return on_timeout_(timeout_text(beat, allowance));
  }
}

}  // namespace sidestream::launch
