// One piece of work on a thread of its own, with its failure kept for whoever asks.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

namespace sidestream::launch {

class BackgroundTask {
 public:
  BackgroundTask() = default;
  // Waits for the work a moment; what hangs then (a dead file system) is left behind, because the
  // end of the process must not hang with it. The work owns what it uses.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // Nothing may be running. The thread gives way to those that compute.
  void start(std::function<void()> work);

  // No work runs; without waiting.
  bool done() const noexcept { return !state_ || state_->done.load(std::memory_order_acquire); }

  // Waits for the work and throws what it threw, once.
  void finish();

  // The same for somebody who has to go on. False: the work has not ended within the limit and is
  // left behind; what it throws is lost, and done() says when it has ended after all.
  bool finish_within(std::chrono::milliseconds limit);

  // Leaves the work behind unless it ends within the patience; what it throws is lost.
  void leave(std::chrono::milliseconds patience) noexcept;

 private:
  struct State {
    std::atomic<bool> done{false};
    std::exception_ptr failure;
  };
  void rethrow_failure();

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace sidestream::launch
