// What a rank does at the moment when it finds out that a collective has failed or is past its
// deadline: after the peers were told, before anybody on this rank throws. The time to write down
// what every thread is doing.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace sidestream::comm {

class FailureHook {
 public:
  using Id = int;

  // The hook must not communicate. Hooks run in the order in which they were added.
  Id add(std::function<void()> hook) {
    const std::lock_guard lock(mutex_);
    hooks_.emplace(++last_id_, std::move(hook));
    return last_id_;
  }

  // Takes it away, and waits for one that runs. An unknown id is none of this object's business.
  void remove(Id id) {
    const std::lock_guard lock(mutex_);
    hooks_.erase(id);
  }

  // Each hook once; by the thread that finds out. What a hook throws is dropped: the failure is
  // what counts.
  void run() noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, hook] : std::exchange(hooks_, {})) {
      try {
        hook();
      } catch (...) {
      }
    }
  }

 private:
  std::mutex mutex_;
  std::map<Id, std::function<void()>> hooks_;
  Id last_id_ = 0;
};

}  // namespace sidestream::comm
