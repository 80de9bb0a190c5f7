// Signs of life of the thread that trains: what it has begun last. Read by this rank's watchdog and
// by peers that wait for this rank.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/communicator.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::launch {

class Heartbeat {
 public:
  struct Beat {
    std::uint64_t count = 0;  // so far; 0: none yet, or resting
    ranges::Phase phase = ranges::Phase::kData;
    std::int64_t step = 0;  // 0: set-up
  };

  Heartbeat() = default;  // nobody listens
  explicit Heartbeat(comm::Communicator& communicator) : communicator_(&communicator) {}

  // Before each part of a step, a save, an evaluation; by the thread that trains.
  void beat(ranges::Phase phase, std::int64_t step) noexcept {
    step_.store(step, std::memory_order_relaxed);
    phase_.store(phase, std::memory_order_relaxed);
    resting_.store(false, std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_release);
    if (communicator_ != nullptr) communicator_->note_activity(phase, step);
  }
  // A checkpoint is being written beside training: a sign of life of the thread that does it, when
  // it begins and (step 0) when it has ended.
  struct Save {
    std::uint64_t count = 0;  // so far
    std::int64_t step = 0;    // 0: none
  };
  void note_save(std::int64_t step) noexcept {
    saving_.store(step, std::memory_order_relaxed);
    saves_.fetch_add(1, std::memory_order_release);
  }
  Save save() const noexcept {
    return {.count = saves_.load(std::memory_order_acquire),
            .step = saving_.load(std::memory_order_relaxed)};
  }

  // From here on nothing is expected of training.
  void rest() noexcept { resting_.store(true, std::memory_order_release); }

  // A moment's inaccuracy between the fields does no harm.
  Beat last() const noexcept {
    if (resting_.load(std::memory_order_acquire)) return {};
    return {.count = count_.load(std::memory_order_acquire),
            .phase = phase_.load(std::memory_order_relaxed),
            .step = step_.load(std::memory_order_relaxed)};
  }

 private:
  comm::Communicator* communicator_ = nullptr;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<ranges::Phase> phase_{ranges::Phase::kData};
  std::atomic<std::int64_t> step_{0};
  std::atomic<bool> resting_{true};
  std::atomic<std::uint64_t> saves_{0};
  std::atomic<std::int64_t> saving_{0};
};

}  // namespace sidestream::launch
