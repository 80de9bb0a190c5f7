// What a rank does at the moment when it finds out that a collective has failed or is past its
// deadline: after the peers were told, before anybody on this rank throws. The time to write down
// what every thread is doing.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace sidestream::comm {

class FailureHook {
 public:
  // The hook must not communicate. An empty one takes the hook away, and waits for one that runs.
  void set(std::function<void()> hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
  }

  // Once; by the thread that finds out. What the hook throws is dropped: the failure is what
  // counts.
  void run() noexcept {
    const std::lock_guard lock(mutex_);
    try {
      if (const auto hook = std::exchange(hook_, nullptr)) hook();
    } catch (...) {
    }
  }

 private:
  std::mutex mutex_;
  std::function<void()> hook_;
};

}  // namespace sidestream::comm
